(function () {
  "use strict";
  var charts = JSON.parse(document.getElementById("figures").textContent);
  var config = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };
  var places = Object.keys(charts).map(function (id) {
    var place = document.getElementById(id);
    Plotly.newPlot(place, charts[id].data, charts[id].layout, config);
    return place;
  });
  function sized(width) {
    places.forEach(function (place) {
      Plotly.relayout(place, { width: width ? Math.min(width, place.clientWidth) : null, autosize: !width });
    });
  }
  addEventListener("beforeprint", function () { sized(640); });
  addEventListener("afterprint", function () { sized(null); });
})();

(function () {
  "use strict";
  var root = document.documentElement, airflow = null;

  // Within Airflow's frame: the same colours as Airflow around it, and links to Airflow open there, not in the frame.
  try {
    if (window.parent !== window) { airflow = window.parent.document; }
  } catch (notOurs) { airflow = null; }

  function follow() {
    var mode = airflow.documentElement.classList;
    if (mode.contains("dark")) { root.dataset.theme = "dark"; } else if (mode.contains("light")) { root.dataset.theme = "light"; }
  }
  if (airflow) {
    follow();
    new MutationObserver(follow).observe(airflow.documentElement, { attributes: true, attributeFilter: ["class"] });
  }

  document.addEventListener("click", function (event) {
    var link = event.target.closest("a[data-airflow]");
    if (!link || !airflow || event.ctrlKey || event.metaKey) { return; }
    event.preventDefault();
    var outside = airflow.createElement("a");
    outside.href = link.href;
    airflow.body.appendChild(outside);
    outside.click();
    outside.remove();
  });

  // Rows: j and k go down and up, Enter opens the first link.
  var chosen = -1;
  function rows() { return Array.prototype.slice.call(document.querySelectorAll(".row")); }
  function choose(step) {
    var all = rows();
    if (!all.length) { return; }
    if (all[chosen]) { all[chosen].classList.remove("chosen"); }
    chosen = Math.max(0, Math.min(all.length - 1, chosen + step));
    var row = all[chosen], place = row.matches("a") ? row : row.querySelector("a") || row;
    row.classList.add("chosen");
    if (place === row && !row.matches("a")) { row.tabIndex = -1; }
    place.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }
  function go(which) {
    var link = document.querySelectorAll(".top nav a")[which];
    if (link) { link.click(); }
  }
  var keys = {
    j: function () { choose(1); }, k: function () { choose(-1); }, c: function () { go(0); }, h: function () { go(1); }, r: function () { location.reload(); },
    "/": function () { var field = document.querySelector("[data-search]"); if (field) { field.focus(); field.select(); } },
    "?": function () { var help = document.getElementById("keys"); if (!help.open) { help.showModal(); } }
  };
  function writing(element) { return element && /^(INPUT|SELECT|TEXTAREA)$/.test(element.tagName); }
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || writing(event.target) || !keys[event.key]) { return; }
    event.preventDefault();
    keys[event.key]();
  });

  // A command is copied; where the browser forbids that, it is selected for the person to copy.
  document.addEventListener("click", function (event) {
    var button = event.target.closest("button[data-copy]"), code = button && button.previousElementSibling;
    if (!code) { return; }
    function copied() { button.textContent = "Copied"; }
    function select() { getSelection().selectAllChildren(code); button.textContent = "Selected"; }
    if (navigator.clipboard) { navigator.clipboard.writeText(code.textContent).then(copied, select); } else { select(); }
  });

  // What changes is loaded again while somebody looks, unless they are about to type.
  var seconds = Number(document.body.dataset.refresh);
  if (seconds) {
    setInterval(function () {
      if (document.visibilityState === "visible" && !writing(document.activeElement) && !document.getElementById("keys").open) { location.reload(); }
    }, seconds * 1000);
  }
})();

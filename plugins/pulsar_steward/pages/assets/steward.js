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
  function all(within, selector) { return Array.prototype.slice.call(within.querySelectorAll(selector)); }
  function choose(step) {
    var rows = all(document, ".row:not([hidden])");
    if (!rows.length) { return; }
    if (rows[chosen]) { rows[chosen].classList.remove("chosen"); }
    chosen = Math.max(0, Math.min(rows.length - 1, chosen + step));
    var row = rows[chosen], place = row.matches("a") ? row : row.querySelector("a") || row;
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
    j: function () { choose(1); }, k: function () { choose(-1); }, c: function () { go(0); }, h: function () { go(1); }, r: function () { update(); },
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

  // In a narrow window cells stand below each other: each number has its head with it.
  function label() {
    all(document, "table.stack").forEach(function (table) {
      var heads = all(table, "thead th");
      all(table, "tbody .n").forEach(function (each) { each.dataset.head = heads[each.cellIndex].textContent; });
    });
  }

  // Tables sort and filter here, without asking again; the choice stays when the page is brought up to date.
  var orders = {}, filters = { text: "", health: "" }, figure = /^[\d,]+(\.\d+)?( %)?$/;
  function orderOf(table) {
    var name = table.closest("[aria-label]").getAttribute("aria-label");
    return orders[name] = orders[name] || { column: -1, down: false };
  }
  function cell(row, column) {
    var each = row.cells[column], text = each ? each.dataset.value || each.textContent.trim() : "";
    return figure.test(text) ? parseFloat(text.replace(/,/g, "")) : text;
  }
  function compare(column, down) {
    return function (one, other) {
      var x = cell(one, column), y = cell(other, column), by = isNaN(x) || isNaN(y) ? String(x).localeCompare(y) : x - y;
      return down ? -by : by;
    };
  }
  function sort(table) {
    var order = orderOf(table), body = table.tBodies[0];
    all(table, "thead th").forEach(function (head) {
      if (!head.querySelector("button")) {
        var button = document.createElement("button");
        button.type = "button";
        button.textContent = head.textContent;
        head.replaceChildren(button);
      }
      if (head.cellIndex === order.column) { head.setAttribute("aria-sort", order.down ? "descending" : "ascending"); } else { head.removeAttribute("aria-sort"); }
    });
    if (order.column >= 0) { all(body, "tr").sort(compare(order.column, order.down)).forEach(function (row) { body.appendChild(row); }); }
  }
  function arrange() {
    var form = document.querySelector("form[data-filters]"), shown = 0;
    all(document, "table[data-sorts]").forEach(sort);
    if (!form) { return; }
    var rows = all(form.nextElementSibling, "tbody tr");
    rows.forEach(function (row) {
      row.hidden = row.textContent.toLowerCase().indexOf(filters.text.toLowerCase()) < 0 || (filters.health !== "" && row.dataset.health !== filters.health);
      shown += row.hidden ? 0 : 1;
    });
    form.hidden = false;
    form.elements.text.value = filters.text;
    form.elements.health.value = filters.health;
    form.querySelector("output").textContent = shown + " of " + rows.length + " shown";
  }
  document.addEventListener("click", function (event) {
    var button = event.target.closest("table[data-sorts] th button"), head = button && button.parentNode;
    if (!head) { return; }
    var order = orderOf(head.closest("table"));
    order.down = order.column === head.cellIndex ? !order.down : head.classList.contains("n");
    order.column = head.cellIndex;
    arrange();
  });
  function filter(event) {
    if (!event.target.form || !event.target.form.matches("[data-filters]")) { return; }
    filters[event.target.name] = event.target.value;
    arrange();
  }
  document.addEventListener("input", filter);
  document.addEventListener("change", filter);
  document.addEventListener("submit", function (event) { if (event.target.matches("[data-filters]")) { event.preventDefault(); } });
  label();
  arrange();

  // What changes is put into its place while somebody looks: folds, focus and position stay. After a failure less often.
  var failures = 0;
  function named(fold) { return fold.id || fold.querySelector("summary").textContent; }
  function update() {
    return fetch(location.href, { headers: { Accept: "text/html" } }).then(function (answer) {
      if (!answer.ok) { throw new Error("it answered " + answer.status); }
      return answer.text();
    }).then(function (text) {
      var page = new DOMParser().parseFromString(text, "text/html"), before = document.getElementById("main"), after = page.getElementById("main");
      var focused = document.activeElement, takesFocus = "a, button, summary, [tabindex]", place = all(before, takesFocus).indexOf(focused), open = {};
      all(before, "details").forEach(function (each) { open[named(each)] = each.open; });
      all(after, "details").forEach(function (each) { if (named(each) in open) { each.open = open[named(each)]; } });
      before.replaceChildren.apply(before, Array.prototype.slice.call(after.childNodes));
      label();
      arrange();
      document.querySelector(".clock").textContent = page.querySelector(".clock").textContent;
      document.body.dataset.refresh = page.body.dataset.refresh || "";
      if (place >= 0) {
        var same = focused.href && before.querySelector('a[href="' + CSS.escape(focused.getAttribute("href")) + '"]');
        (same || all(before, takesFocus)[place] || before).focus({ preventScroll: true });
      }
      failures = 0;
    }).catch(function (failure) {
      failures += 1;
      document.querySelector(".clock").textContent = "Not up to date: " + failure.message;
    });
  }
  function later() {
    if (!Number(document.body.dataset.refresh)) { return; }
    setTimeout(function () {
      var quiet = document.visibilityState === "visible" && !writing(document.activeElement) && !document.getElementById("keys").open;
      (quiet ? update() : Promise.resolve()).then(later);
    }, Number(document.body.dataset.refresh) * 1000 * Math.min(8, Math.pow(2, failures)));
  }
  later();
})();

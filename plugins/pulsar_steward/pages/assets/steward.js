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

  // A table sorts and filters here, without asking again; the choice stays when the page is brought up to date.
  var view = { column: -1, down: false, text: "", health: "" };
  function cell(row) { var each = row.cells[view.column]; return each.dataset.value || each.textContent.trim(); }
  function order(one, other) {
    var x = cell(one), y = cell(other), by = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
    return view.down ? -by : by;
  }
  function arrange() {
    var table = document.querySelector("table[data-sorts]"), form = document.querySelector("form[data-filters]"), shown = 0;
    if (!table) { return; }
    var body = table.tBodies[0], rows = all(body, "tr");
    all(table, "thead th").forEach(function (head) {
      if (!head.querySelector("button")) {
        var button = document.createElement("button");
        button.type = "button";
        button.textContent = head.textContent;
        head.replaceChildren(button);
      }
      if (head.cellIndex === view.column) { head.setAttribute("aria-sort", view.down ? "descending" : "ascending"); } else { head.removeAttribute("aria-sort"); }
    });
    if (view.column >= 0) { rows.sort(order).forEach(function (row) { body.appendChild(row); }); }
    rows.forEach(function (row) {
      row.hidden = row.textContent.toLowerCase().indexOf(view.text.toLowerCase()) < 0 || (view.health !== "" && row.dataset.health !== view.health);
      shown += row.hidden ? 0 : 1;
    });
    form.hidden = false;
    form.elements.text.value = view.text;
    form.elements.health.value = view.health;
    form.querySelector("output").textContent = shown + " of " + rows.length + " shown";
  }
  document.addEventListener("click", function (event) {
    var button = event.target.closest("table[data-sorts] th button"), head = button && button.parentNode;
    if (!head) { return; }
    view.down = view.column === head.cellIndex ? !view.down : head.classList.contains("n");
    view.column = head.cellIndex;
    arrange();
  });
  function filter(event) {
    if (!event.target.form || !event.target.form.matches("[data-filters]")) { return; }
    view[event.target.name] = event.target.value;
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

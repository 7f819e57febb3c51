// Shows the report that lies in #data. Whatever comes from logs reaches the page as text
// (textContent and attributes of our own), never as HTML.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const sessions = new Map(data.sessions.map((session) => [session.session_id, session]));
  const SERIES = 8;
  let charts = [];

  const name = (session) => session.title || session.session_id;
  const address = (id) => "#session/" + encodeURIComponent(id);

  // ---- elements ----

  const el = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== undefined));
    return element;
  };
  const link = (id) => el("a", { href: address(id) }, name(sessions.get(id) || { session_id: id }));
  const linkOrId = (id) => (sessions.has(id) ? link(id) : el("code", {}, id));

  /** A table; a column is { head, cell, number }, the first one heads its row. */
  const table = (caption, columns, rows) => {
    const cell = (row, column, at) => {
      const attributes = { class: column.number ? "number" : undefined };
      if (at === 0) attributes.scope = "row";
      return el(at === 0 ? "th" : "td", attributes, column.cell(row));
    };
    const head = columns.map((column) =>
      el("th", { scope: "col", class: column.number ? "number" : undefined }, column.head));
    const body = rows.map((row) => el("tr", {}, ...columns.map((column, at) => cell(row, column, at))));
    const made = el("table", {},
      el("caption", {}, caption), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${caption}` }, made);
  };

  /** What is made only when somebody opens it. */
  const folded = (label, make) => {
    const details = el("details", {}, el("summary", {}, label));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(make());
    });
    return details;
  };

  const card = (id, title, ...children) =>
    el("section", { class: "card", "aria-labelledby": id }, el("h2", { id }, title), ...children);

  const tiles = (pairs) =>
    el("dl", { class: "tiles" }, ...pairs.map(([term, value, small]) =>
      el("div", {}, el("dt", {}, term), el("dd", { class: small ? "small" : undefined }, value))));

  // ---- charts ----

  const color = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

  /** A place for a chart; `config` is asked again when the theme changes. */
  const plot = (label, rows, config) => {
    const canvas = el("canvas", { role: "img", "aria-label": label });
    const place = el("div", { class: "plot" }, canvas);
    if (rows) place.style.height = `${rows * 26 + 64}px`;
    charts.push({ canvas, config, chart: undefined });
    return place;
  };

  const draw = () => {
    Chart.defaults.color = color("--dim");
    Chart.defaults.borderColor = color("--grid");
    Chart.defaults.font.family = "system-ui, sans-serif";
    for (const one of charts) {
      if (one.chart) one.chart.destroy();
      one.chart = new Chart(one.canvas, one.config());
    }
  };
  const forget = () => {
    for (const one of charts) if (one.chart) one.chart.destroy();
    charts = [];
  };

  const bars = (labels, datasets, { horizontal, format, tick = format, onClick }) => {
    const values = { stacked: true, beginAtZero: true, ticks: { callback: (value) => tick(value) } };
    const names = {
      stacked: true, grid: { display: false },
      ticks: { autoSkip: !horizontal, maxRotation: 0, callback(value) { return cut(this.getLabelForValue(value)); } },
    };
    return {
      type: "bar",
      data: { labels, datasets },
      options: {
        animation: false,
        maintainAspectRatio: false,
        indexAxis: horizontal ? "y" : "x",
        scales: horizontal ? { x: values, y: names } : { x: names, y: values },
        onClick: onClick && ((_, found) => { if (found.length) onClick(found[0].index); }),
        onHover: onClick && ((event, found) => { event.native.target.style.cursor = found.length ? "pointer" : ""; }),
        interaction: { mode: "index", intersect: false, axis: horizontal ? "y" : "x" },
        plugins: {
          legend: { display: datasets.length > 1, labels: { boxWidth: 12 } },
          tooltip: {
            filter: (item) => item.raw > 0,
            callbacks: { label: (item) => `${item.dataset.label}: ${format(item.raw)}` },
          },
        },
      },
    };
  };
  /** A colour of its own for each name of a chart, the same in every chart where that can be. */
  const remembered = new Map();
  const paint = (names) => {
    const free = new Set(Array.from({ length: SERIES }, (_, index) => index));
    const take = (name) => {
      const index = free.has(remembered.get(name)) ? remembered.get(name) : [...free][0];
      free.delete(index);
      if (!remembered.has(name)) remembered.set(name, index);
      return `--series-${index}`;
    };
    return names.map(take);
  };
  const cut = (text) => (text.length > 42 ? text.slice(0, 41) + "…" : text);
  const dataset = (label, values, variable) => ({
    label, data: values, backgroundColor: color(variable), borderColor: color("--card"), borderWidth: 0.5, maxBarThickness: 40,
  });

  // ---- time ----

  const HOUR = 3600000;
  const DAY = 24 * HOUR;
  const known = [...data.days, ...data.activity].map((row) => row.date).filter((date) => date !== undefined).sort();
  const first = known.length ? Date.parse(known[0]) : 0;
  const last = known.length ? Date.parse(known[known.length - 1]) : -1;
  const days = (last - first) / DAY + 1;
  const unit = days <= 120 ? "day" : days <= 1100 ? "week" : "month";
  const iso = (ms) => new Date(ms).toISOString().slice(0, 10);
  const bin = (date) => {
    if (unit === "day") return date;
    if (unit === "month") return date.slice(0, 7);
    const ms = Date.parse(date);
    return iso(ms - ((new Date(ms).getUTCDay() + 6) % 7) * DAY);
  };
  const bins = [];
  for (let ms = first; ms <= last; ms += DAY) {
    const label = bin(iso(ms));
    if (bins[bins.length - 1] !== label) bins.push(label);
  }

  /** Sums rows into one series for each of the largest names, and one for the others. */
  const series = (rows, nameOf, valueOf) => {
    const totals = new Map();
    for (const row of rows) totals.set(nameOf(row), (totals.get(nameOf(row)) || 0) + valueOf(row));
    const names = [...totals].filter(([, total]) => total > 0).sort((a, b) => b[1] - a[1]).map(([name]) => name);
    const shown = names.length > SERIES ? names.slice(0, SERIES - 1) : names;
    const made = new Map(shown.map((name) => [name, new Array(bins.length).fill(0)]));
    if (shown.length < names.length) made.set("others", new Array(bins.length).fill(0));
    const at = new Map(bins.map((label, index) => [label, index]));
    for (const row of rows) {
      if (row.date === undefined || !totals.get(nameOf(row))) continue;
      const values = made.get(nameOf(row)) || made.get("others");
      values[at.get(bin(row.date))] += valueOf(row);
    }
    return [...made];
  };

  /** A card with bars over time and the table of their days. */
  const overTime = (id, title, note, rows, nameOf, valueOf, format, columns) => {
    const found = series(rows, nameOf, valueOf);
    if (!found.length) return card(id, title, el("p", {}, "Nothing to show: the logs tell none."));
    const total = rows.reduce((sum, row) => sum + valueOf(row), 0);
    const label = `${title}: bars per ${unit}, ${bins[0]} to ${bins[bins.length - 1]}, ${format(total)} in all. The table below has the figures.`;
    const colors = paint(found.map(([name]) => name));
    const config = () => bars(bins, found.map(([name, values], index) => dataset(name, values, colors[index])), { format });
    return card(id, title, el("p", { class: "dim" }, `${note} Bars per ${unit}, days in UTC.`),
      plot(label, undefined, config),
      folded(`Show as a table: ${title}`, () => table(title, columns, rows)));
  };

  // ---- the overview ----

  const date = { head: "Day", cell: (row) => row.date || "no date" };
  const figure = (head, field, format = count) => ({ head, number: true, cell: (row) => format(row[field]) });
  const tokens = (row) => row.total_tokens;
  const usageColumns = [
    figure("Input", "input_tokens"), figure("Output", "output_tokens"), figure("Cache read", "cache_read_tokens"),
    figure("Cache write", "cache_write_tokens"), figure("Total", "total_tokens"), figure("Cost", "cost_usd", money),
  ];

  const about = () => {
    const parts = [];
    if (data.provider) parts.push(`agent ${data.provider}`);
    if (data.project) parts.push(`working directory with “${data.project}”`);
    if (data.since) parts.push(`what happened since ${time(data.since)}`);
    if (data.until) parts.push(`what happened before ${time(data.until)}`);
    const only = parts.length ? `Only ${parts.join(", ")}. ` : "";
    return `${only}Made ${time(data.generated_at)} by sessions ${data.version}. Times are UTC. Copied history counts once; `
      + `costs are computed from list prices of ${data.prices_as_of}, not billed amounts.`;
  };

  const overview = () => {
    const totals = data.totals;
    const parts = [
      el("h1", { tabindex: "-1" }, "Coding sessions"),
      el("p", { class: "dim" }, about()),
      tiles([
        ["Sessions", count(totals.sessions)], ["Subagents", count(totals.subagents)], ["Turns", count(totals.turns)],
        ["Tool calls", count(totals.tool_calls)],
        ["Failed calls", `${count(totals.tool_errors)} (${rate(totals.tool_errors, totals.tool_calls) || "0%"})`],
        ["Tokens", compact.format(totals.total_tokens)], ["Cost", money(totals.cost_usd)],
      ]),
    ];
    if (totals.unpriced_models.length) {
      parts.push(el("p", { class: "dim" }, `Without a price, so not in the cost: ${totals.unpriced_models.join(", ")}.`));
    }
    const model = { head: "Model", cell: (row) => row.model };
    parts.push(
      overTime("tokens", "Tokens by day and model", "Input, output and cache, each request once.", data.days,
        (row) => row.model, tokens, (value) => compact.format(value), [date, model, ...usageColumns]),
      overTime("cost", "Cost by day and model", "US dollars; models without a price are left out.", data.days,
        (row) => row.model, (row) => row.cost_usd || 0, money, [date, model, ...usageColumns]),
      overTime("activity", "Sessions over time", "Sessions by the day they began, subagents left out.", data.activity,
        (row) => row.provider, (row) => row.sessions, count,
        [date, { head: "Agent", cell: (row) => row.provider }, figure("Sessions", "sessions")]),
      toolCard(), errorCard(),
      ranked("longest", "Longest sessions", "By the time between the first and the last record, pauses included.",
        (session) => session.duration_ms / HOUR, (hours) => span(hours * HOUR), (hours) => `${whole.format(hours)} h`),
      ranked("expensive", "Most expensive sessions", "With their subagents; US dollars.",
        (session) => session.family_cost_usd, money),
      listCard());
    return parts;
  };

  const toolCard = () => {
    const shown = data.tools.slice(0, 20);
    if (!shown.length) return card("tools", "Tools and their error rates", el("p", {}, "No tool was called."));
    const label = `Tools and their error rates: calls of the ${shown.length} most used tools, failed ones apart. The table below has the figures.`;
    const config = () => bars(shown.map((tool) => `${tool.tool_name}, ${rate(tool.errors, tool.calls) || "0%"}`), [
      dataset("succeeded", shown.map((tool) => Math.max(tool.calls - tool.errors, 0)), "--good"),
      dataset("failed", shown.map((tool) => tool.errors), "--bad"),
    ], { horizontal: true, format: count });
    return card("tools", "Tools and their error rates",
      el("p", { class: "dim" }, "Calls of each tool and the share of them whose result the log marks as failed."),
      plot(label, shown.length, config),
      folded(`Show as a table: all ${data.tools.length} tools`, () => table("Tools", [
        { head: "Tool", cell: (tool) => tool.tool_name }, { head: "Kind", cell: (tool) => tool.tool_kind || "" },
        figure("Calls", "calls"), figure("Failed", "errors"),
        { head: "Error rate", number: true, cell: (tool) => rate(tool.errors, tool.calls) },
        figure("Sessions", "sessions"), figure("Median", "duration_p50_ms", span), figure("95 %", "duration_p95_ms", span),
      ], data.tools)));
  };

  const errorCard = () => {
    const shown = data.errors.slice(0, 15);
    if (!shown.length) return card("errors", "Recurring errors", el("p", {}, "No error occurred twice."));
    const label = `Recurring errors: how often each of the ${shown.length} most frequent ones occurred. The table below has the figures.`;
    const config = () => bars(shown.map((error) => error.signature),
      [dataset("occurrences", shown.map((error) => error.count), "--bad")], { horizontal: true, format: count });
    return card("errors", "Recurring errors",
      el("p", { class: "dim" }, "Results marked as failed, alike but for numbers, paths and names; those that occurred at least twice."),
      plot(label, shown.length, config),
      folded(`Show as a table: ${data.errors.length} recurring errors`, () => table("Recurring errors", [
        { head: "Error", cell: (error) => el("code", {}, error.signature) },
        figure("Times", "count"), figure("Sessions", "sessions"),
        { head: "Tools", cell: (error) => error.tools.join(", ") },
        { head: "Last", cell: (error) => el("span", {}, `${time(error.last_timestamp)}, `, linkOrId(error.last_session_id)) },
        { head: "Event", cell: (error) => el("code", {}, error.last_event_id) },
      ], data.errors)));
  };

  const ranked = (id, title, note, valueOf, format, tick) => {
    const roots = data.sessions.filter((session) => !session.is_subagent && valueOf(session) > 0);
    const shown = roots.sort((a, b) => valueOf(b) - valueOf(a)).slice(0, 15);
    if (!shown.length) return card(id, title, el("p", {}, "Nothing to show: the logs tell none."));
    const label = `${title}: the first ${shown.length}. The table below has the figures and links.`;
    const config = () => bars(shown.map(name), [dataset(title, shown.map(valueOf), "--series-0")],
      { horizontal: true, format, tick, onClick: (at) => { location.hash = address(shown[at].session_id); } });
    return card(id, title, el("p", { class: "dim" }, note), plot(label, shown.length, config),
      table(title, [
        { head: "Session", cell: (session) => link(session.session_id) },
        { head: "Began", cell: (session) => time(session.started_at) },
        figure("Duration", "duration_ms", span), figure("Turns", "turns"), figure("Tool calls", "tool_calls"),
        figure("Failed", "tool_errors"), figure("Cost", "family_cost_usd", money),
      ], shown));
  };

  // ---- all sessions ----

  const ORDERS = {
    "newest first": (a, b) => ((a.started_at || "") < (b.started_at || "") ? 1 : -1),
    "most expensive first": (a, b) => (b.family_cost_usd || 0) - (a.family_cost_usd || 0),
    "most tokens first": (a, b) => b.total_tokens - a.total_tokens,
    "longest first": (a, b) => (b.duration_ms || 0) - (a.duration_ms || 0),
    "most failed calls first": (a, b) => b.tool_errors - a.tool_errors,
  };
  const PAGE = 100;

  const listCard = () => {
    const input = el("input", { type: "search", autocomplete: "off" });
    const order = el("select", {}, ...Object.keys(ORDERS).map((key) => el("option", {}, key)));
    const subagents = el("input", { type: "checkbox" });
    const said = el("p", { class: "dim", role: "status" });
    const place = el("div", {});
    const more = el("button", { type: "button" }, `Show ${PAGE} more`);
    let room = PAGE;
    const show = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (session) => {
        const text = [session.title, session.session_id, session.project, session.provider, session.model, session.git_branch]
          .join(" ").toLowerCase();
        return (subagents.checked || !session.is_subagent) && words.every((word) => text.includes(word));
      };
      const found = data.sessions.filter(fits).sort(ORDERS[order.value]);
      said.textContent = `${count(found.length)} sessions, ${count(Math.min(room, found.length))} shown`;
      place.replaceChildren(table("Sessions", [
        { head: "Session", cell: (session) => link(session.session_id) },
        { head: "Began", cell: (session) => time(session.started_at) }, { head: "Agent", cell: (session) => session.provider },
        { head: "Project", cell: (session) => session.project || "" },
        figure("Duration", "duration_ms", span), figure("Turns", "turns"), figure("Failed", "tool_errors"),
        figure("Tokens", "total_tokens", (value) => compact.format(value)), figure("Cost", "cost_usd", money),
      ], found.slice(0, room)));
      more.hidden = found.length <= room;
    };
    // The address has what was chosen, so that Back and a copied address show the same list.
    const chosen = new URLSearchParams(location.hash.slice(1));
    input.value = chosen.get("words") || "";
    order.value = chosen.get("order") in ORDERS ? chosen.get("order") : Object.keys(ORDERS)[0];
    subagents.checked = chosen.has("subagents");
    room = Number(history.state?.room) || PAGE;
    const write = () => {
      const choice = new URLSearchParams();
      if (input.value) choice.set("words", input.value);
      if (order.selectedIndex > 0) choice.set("order", order.value);
      if (subagents.checked) choice.set("subagents", "1");
      const text = choice.toString();
      history.replaceState({ ...history.state, room }, "", text ? `#${text}` : location.pathname + location.search);
    };
    const again = () => { room = PAGE; show(); write(); };
    input.addEventListener("input", again);
    order.addEventListener("change", again);
    subagents.addEventListener("change", again);
    more.addEventListener("click", () => { room += PAGE; show(); write(); });
    show();
    return card("all", "All sessions", el("div", { class: "controls" },
      el("label", {}, "Title, project, agent, model or branch contains", input), el("label", {}, "Order", order),
      el("label", {}, "With subagents", subagents)), said, place, more);
  };

  // ---- one session ----

  const said = (kind, label, text) =>
    el("div", { class: `said ${kind}` }, el("div", { class: "label" }, label), el("pre", {}, text));

  const turnPart = (turn) => {
    const parts = [time(turn.timestamp), turn.duration_ms === undefined ? undefined : span(turn.duration_ms),
      `${count(turn.tool_calls)} tool calls`, turn.tool_errors ? `${turn.tool_errors} failed` : undefined,
      turn.total_tokens ? `${compact.format(turn.total_tokens)} tokens` : undefined,
      turn.cost_usd === undefined ? undefined : money(turn.cost_usd)];
    return el("section", { class: "turn" },
      el("h3", {}, turn.turn_index === 0 ? "Before the first prompt" : `Turn ${turn.turn_index}`),
      el("div", { class: "label" }, parts.filter(Boolean).join(" · ") + " · ", el("code", {}, turn.event_id)),
      turn.prompt === undefined ? undefined : said("prompt", "Prompt", turn.prompt),
      turn.answer === undefined ? undefined : said("answer", "Last answer", turn.answer));
  };

  const page = (session) => {
    const parts = [
      el("p", {}, el("a", { href: "#" }, "← All sessions")),
      el("h1", { tabindex: "-1" }, name(session)),
      el("p", { class: "dim" }, el("code", {}, session.session_id)),
      tiles([
        ["Agent", session.provider, true], ["Project", session.project || "not known", true],
        ["Branch", session.git_branch || "not known", true], ["Model", session.model || "not known", true],
        ["Began", time(session.started_at), true], ["Duration", span(session.duration_ms), true],
        ["Turns", count(session.turns)], ["Tool calls", count(session.tool_calls)],
        ["Failed calls", count(session.tool_errors)], ["Tokens", compact.format(session.total_tokens)],
        ["Cost", money(session.cost_usd)],
        ...(session.family_cost_usd !== session.cost_usd ? [["With subagents", money(session.family_cost_usd)]] : []),
      ]),
    ];
    if (session.parent_session_id) {
      const how = (session.relation || "child_of").replaceAll("_", " ");
      parts.push(el("p", {}, `This session is ${how} `, linkOrId(session.parent_session_id), "."));
    }
    if (session.children.length) {
      parts.push(card("children", "Sessions that hang on it",
        el("ul", {}, ...session.children.map((id) => el("li", {}, linkOrId(id))))));
    }
    const left = session.timeline_omitted;
    parts.push(card("turns", "Turns", ...session.timeline.map(turnPart),
      left ? el("p", { class: "dim" }, `${left} more turns are left out.`) : undefined,
      el("p", { class: "dim" }, "Prompts and answers are shortened. The whole: ",
        el("code", {}, `sessions export --format html --session-id ${session.session_id} -o session.html`))));
    if (session.models.length) {
      parts.push(card("models", "Tokens by model", table("Tokens by model",
        [{ head: "Model", cell: (row) => row.model }, ...usageColumns], session.models)));
    }
    if (session.tools.length) {
      parts.push(card("session-tools", "Tools", table("Tools", [
        { head: "Tool", cell: (tool) => tool.tool_name }, figure("Calls", "calls"), figure("Failed", "errors"),
        { head: "Error rate", number: true, cell: (tool) => rate(tool.errors, tool.calls) }], session.tools)));
    }
    if (session.failures.length) {
      const omitted = session.tool_errors - session.failures.length;
      parts.push(card("failures", "Failed calls", ...session.failures.map((failure) =>
        said("failed", el("span", {}, `${failure.tool_name || "tool"}, turn ${failure.turn_index}, `, el("code", {}, failure.event_id)), failure.text)),
        omitted > 0 ? el("p", { class: "dim" }, `${omitted} earlier ones are left out.`) : undefined));
    }
    return parts;
  };

  // ---- from the address to the page ----

  const show = (focus, place) => {
    const [, id] = location.hash.match(/^#session\/(.+)$/) || [];
    let session;
    try { session = id && sessions.get(decodeURIComponent(id)); } catch { /* no id of ours */ }
    forget();
    main.replaceChildren(...(session ? page(session) : overview()));
    draw();
    document.title = session ? `${name(session)} – coding sessions` : "Coding sessions";
    if (place) scrollTo(0, place.y || 0);
    else if (focus) {
      scrollTo(0, 0);
      main.querySelector("h1").focus();
    }
  };

  // Back and Forward return to the place that was left.
  let place = history.state;
  let timer;
  history.scrollRestoration = "manual";
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState({ ...history.state, y: scrollY }, ""), 150);
  }, { passive: true });
  addEventListener("popstate", (event) => {
    clearTimeout(timer);
    place = event.state;
  });
  addEventListener("hashchange", () => {
    show(true, place);
    place = undefined;
  });
  dark.addEventListener("change", draw);
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  show(false, place);
  place = undefined;
})();

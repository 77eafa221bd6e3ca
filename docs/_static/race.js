// Pathways that thicken with their singular values, beside the loss, along a slider.
(() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const COLOURS = ["#443983", "#31688e", "#21918c", "#90d743"];
  const HEIGHT = 260, LEFT = 380, GAP = 60, RIGHT = 300, TOP = 14, BOTTOM = 34, THICK = 34;

  const element = (name, attributes, parent, text) => {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };

  const polyline = (parent, values, x, y, attributes) => element("polyline", {
    points: values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(" "),
    fill: "none", ...attributes,
  }, parent);

  const draw = (race) => {
    const data = JSON.parse(race.querySelector("script").textContent);
    const { times, pathways } = data, last = times.length - 1;
    const svg = element("svg", { viewBox: `0 0 ${LEFT + GAP + RIGHT} ${HEIGHT}`, width: "100%" }, race);
    const widest = Math.max(...pathways.flatMap((each) => each.width));
    const step = (HEIGHT - TOP - BOTTOM) / pathways.length;
    const lines = pathways.map((each, i) => {
      const y = TOP + (i + 0.5) * step, colour = COLOURS[i % COLOURS.length];
      element("text", { x: 0, y: y + 4 }, svg, each.name);
      const line = element("path", {
        d: `M 140 ${y} L ${LEFT} ${y}`, stroke: colour, fill: "none", "stroke-linecap": "round",
      }, svg);
      const value = element("text", { x: LEFT + 8, y: y + 4 }, svg);
      return { line, value, width: each.width };
    });
    const x0 = LEFT + GAP, losses = pathways.filter((each) => each.loss);
    const most = Math.max(...losses.flatMap((each) => each.loss));
    const x = (i) => x0 + ((times[i] - times[0]) / (times[last] - times[0])) * RIGHT;
    const y = (loss) => HEIGHT - BOTTOM - (loss / most) * (HEIGHT - TOP - BOTTOM);
    element("path", { d: `M ${x0} ${TOP} V ${y(0)} H ${x0 + RIGHT}`, stroke: "#888", fill: "none" }, svg);
    element("text", { x: x0 + 4, y: TOP + 4 }, svg, "loss");
    element("text", { x: x0 + RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, svg, data.unit);
    for (const each of losses) {
      const colour = losses.length > 1 ? COLOURS[pathways.indexOf(each) % COLOURS.length] : "#666";
      polyline(svg, each.loss, x, y, { stroke: colour, "stroke-width": 4, opacity: 0.5 });
      if (each.theory) {
        polyline(svg, each.theory, x, y, { stroke: "currentColor", "stroke-dasharray": "4 3" });
      }
    }
    const cursor = element("line", { y1: TOP, y2: y(0), stroke: "#b2182b" }, svg);
    const controls = document.createElement("div");
    const play = document.createElement("button");
    const slider = document.createElement("input");
    play.type = "button";
    Object.assign(slider, { type: "range", min: 0, max: last, value: 0 });
    slider.setAttribute("aria-label", "time");
    controls.append(play, slider);
    race.append(controls);
    const show = () => {
      const i = Number(slider.value);
      for (const { line, value, width } of lines) {
        line.setAttribute("stroke-width", Math.max(1, (width[i] / widest) * THICK));
        value.textContent = width[i].toPrecision(2);
      }
      for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(i));
    };
    let timer = 0;
    const stop = () => { clearInterval(timer); timer = 0; play.textContent = "Play"; };
    play.addEventListener("click", () => {
      if (timer) return stop();
      if (Number(slider.value) === last) slider.value = 0;
      play.textContent = "Pause";
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        show();
        if (Number(slider.value) >= last) stop();
      }, 60);
    });
    slider.addEventListener("input", () => { stop(); show(); });
    stop();
    show();
  };

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".race").forEach(draw));
})();

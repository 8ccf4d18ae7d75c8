{
  const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
  const all = (parent, selector) => [...parent.querySelectorAll(selector)];
  const race = document.querySelector(".lanes");
  const names = all(document, ".clock");
  const conclusions = document.querySelector(".conclusions");
  const lanes = all(race, ".lane").map((lane) => {
    const bars = all(lane, "rect");
    const took = bars.map((bar) => Number(bar.getAttribute("width")) / 1000);
    const sums = (each) => each.reduce((sum, one) => [...sum, sum[sum.length - 1] + one], [0]);
    return {
      whole: lane.matches(".whole"), bars, took, unit: lane.dataset.unit,
      spans: all(lane, ".answer > span"),
      tokens: sums(bars.map((bar) => Number(bar.getAttribute("height")))),
      ends: [sums(took.map(() => 1)), sums(took)],  // of its passes, by each clock
      standing: lane.querySelector(".standing"), figures: lane.querySelector(".figures"), svg: lane.querySelector("svg"),
    };
  });
  const most = Number(lanes[0].svg.getAttribute("viewBox").split(" ")[3]);
  let clock = 0, moments = [0];

  const done = (lane, time) => lane.ends[clock].filter((end) => end <= time).length - 1;
  const standing = (lane, time) => {
    const end = lane.ends[clock][lane.took.length];
    if (end <= time) {
      if (!lane.whole) return "stopped";
      const before = lanes.filter((other) => other.whole && other.ends[clock][other.took.length] < end).length;
      return `✓ ${["1st", "2nd", "3rd", "4th"][before]}`;
    }
    const tokens = lanes.map((other) => other.tokens[done(other, time)]);
    const own = lane.tokens[done(lane, time)];
    return own === Math.max(...tokens) && own > Math.min(...tokens) ? "▲ 1st" : "";
  };
  const duration = (seconds) => {
    const milliseconds = Math.round(1000 * seconds);
    return milliseconds < 1000 ? `${milliseconds} ms` : `${seconds.toFixed(1)} s`;
  };
  const show = (index) => {
    const time = moments[index];
    for (const lane of lanes) {
      const passes = done(lane, time), tokens = lane.tokens[passes];
      written(lane.spans, passes);
      lane.bars.forEach((bar, place) => bar.classList.toggle("unwritten", place >= passes));
      lane.standing.textContent = standing(lane, time);
      const seconds = clock ? [duration(lane.ends[1][passes])] : [];
      const byPasses = [counted(tokens, "token", "tokens"), counted(passes, "pass", "passes")];
      const rate = clock ? [] : [`${(tokens / passes).toFixed(2)} a pass`];
      // Of a chunk neither its tokens nor its passes are known.
      const counts = lane.unit === "pass" ? [...byPasses, ...rate] : [counted(passes, lane.unit, `${lane.unit}s`)];
      lane.figures.textContent = passes ? [...counts, ...seconds].join(" · ") : "\u00a0";
    }
    conclusions.classList.toggle("unwritten", index < moments.length - 1);
  };
  const say = (index) => {
    const [now, end] = [moments[index], moments[moments.length - 1]];
    const place = clock ? `${duration(now)} of ${duration(end)}` : `${race.dataset.unit} ${now} of ${end}`;
    return `${names[clock].dataset.name} ${clock ? race.dataset.seconds : 1}× · ${place}`;
  };
  const played = player(document.querySelector(".player"), show, say);

  const choose = (chosen) => {
    const share = moments[played.at] / (moments[moments.length - 1] || 1);
    clock = chosen;
    moments = [...new Set(lanes.flatMap((lane) => lane.ends[clock]))].sort((one, other) => one - other);
    const pace = Number(clock ? race.dataset.seconds : race.dataset.passes);
    played.set(moments, moments.map((time, index) => ((moments[index + 1] ?? time) - time) / pace));
    const end = moments[moments.length - 1];
    for (const lane of lanes) {
      lane.svg.setAttribute("viewBox", `0 0 ${end} ${most}`);
      lane.bars.forEach((bar, place) => {
        bar.setAttribute("x", lane.ends[clock][place]);
        bar.setAttribute("width", lane.ends[clock][place + 1] - lane.ends[clock][place]);
      });
    }
    names.forEach((name, index) => { name.hidden = index !== clock; });
    return moments.filter((time) => time <= share * end).length - 1;
  };
  for (const lane of lanes) {
    lane.spans.forEach((span, step) => span.addEventListener("click", () => {
      played.go(moments.indexOf(lane.ends[clock][step + 1]));
    }));
  }
  const change = () => {
    const playing = played.playing;
    played.go(choose(1 - clock));
    if (playing) played.play();
  };
  document.querySelector(".clocks").addEventListener("click", change);
  document.addEventListener("keydown", (event) => {
    if (event.key === "c" && !event.ctrlKey && !event.altKey && !event.metaKey) change();
  });
  document.documentElement.classList.add("live");
  choose(0);
  played.begin(0);
}

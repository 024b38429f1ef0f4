"use strict";
const root = document.documentElement, data = JSON.parse(document.getElementById("data").textContent);
root.classList.add("js");
const button = document.getElementById("theme"), prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
const nameTheme = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`); };
button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
prefersDark.addEventListener("change", nameTheme);
nameTheme();

const switches = [...document.querySelectorAll(".switch button[data-way]")];
const choose = way => {
  for (const part of document.querySelectorAll(".timeline, .scroll[data-way]")) part.classList.toggle("away", part.dataset.way !== way);
  for (const one of switches) one.setAttribute("aria-pressed", String(one.dataset.way === way));
  for (const audio of document.querySelectorAll(`.timeline:not([data-way="${way}"]) audio`)) audio.pause();
};
for (const one of switches) one.addEventListener("click", () => choose(one.dataset.way));
if (switches.length) choose("0");

// What a curve is at a moment: the interval that holds it, or the nearest point that is not far.
const valueAt = (series, at) => {
  const points = series.points;
  if (series.interval) { const index = points.findIndex(point => point[0] >= at); return index < 0 ? null : points[index][1]; }
  let best = null;
  for (const point of points) {
    if (point[1] === null) continue;
    if (point[0] <= at) best = point; else { if (!best || point[0] - at < at - best[0]) best = point; break; }
  }
  return best && (Math.abs(best[0] - at) <= 1 || series.holds) ? best[1] : null;
};
for (const chart of data) for (const series of chart.series) series.holds = series.points.length < 200 && !series.interval && series.points.some((p, i) => i && p[0] === series.points[i - 1][0]);
const show = (timeline, at) => {
  const max = +timeline.dataset.xMax, cursor = timeline.querySelector(".cursor"), visible = at !== null && at >= 0 && at <= max;
  cursor.hidden = !visible;
  if (visible) { cursor.style.left = `${100 * at / max}%`; cursor.firstChild.textContent = `${at.toFixed(1)} s`; }
  for (const figure of timeline.querySelectorAll("figure")) {
    const chart = data[+figure.dataset.chart];
    figure.querySelectorAll(".now").forEach((output, index) => {
      const value = visible ? valueAt(chart.series[index], at) : null;
      output.textContent = visible ? (value === null ? "–" : value.toLocaleString("en", {maximumFractionDigits: value < 10 ? 1 : 0})) : "";
    });
  }
};
for (const timeline of document.querySelectorAll(".timeline")) {
  const rows = timeline.querySelector(".rows"), layer = timeline.querySelector(".layer"), max = +timeline.dataset.xMax;
  const players = [...timeline.querySelectorAll(".player")].map(part => ({sound: part.querySelector("audio"), offset: +part.dataset.offset}));
  const playing = () => players.find(player => !player.sound.paused);
  const rest = () => { const player = playing(); show(timeline, player ? player.sound.currentTime + player.offset : null); };
  const secondsAt = event => { const box = layer.getBoundingClientRect(); return (event.clientX - box.left) / box.width * max; };
  rows.addEventListener("pointermove", event => show(timeline, secondsAt(event)));
  rows.addEventListener("pointerleave", rest);
  timeline.querySelectorAll(".wave").forEach((wave, index) => wave.addEventListener("click", event => {
    const {sound, offset} = players[index];
    sound.currentTime = Math.max(0, Math.min(secondsAt(event) - offset, (sound.duration || 1) - .05));
    sound.play();
  }));
  for (const player of players) {
    const follow = () => { if (!player.sound.paused) { if (!rows.matches(":hover")) rest(); requestAnimationFrame(follow); } };
    player.sound.addEventListener("play", () => { for (const other of document.querySelectorAll("audio")) if (other !== player.sound) other.pause(); follow(); });
    player.sound.addEventListener("seeked", () => { if (!rows.matches(":hover")) show(timeline, player.sound.currentTime + player.offset); });
    player.sound.addEventListener("ended", rest);
  }
}

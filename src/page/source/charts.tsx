// Charts as SVG. Every chart has its numbers as text for those who do not see it.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { colourOf } from "./colours";
import { Chip } from "./parts";
import { navigate } from "./route";

/** A bar that is stacked from the values of its models. */
export interface Bar {
  label: string;
  /** A longer label for the tooltip. */
  title: string;
  parts: { name: string; value: number }[];
}

/** Returns the distance of about four lines up to a value: 1, 2, 2.5 or 5 times a power of ten. */
function lineDistance(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  return power * [1, 2, 2.5, 5, 10].find((times) => times * power * 4 >= most)!;
}

/** Returns the names of the parts of bars, those with the largest sums first. */
function namesOf(bars: Bar[]): string[] {
  const sums = new Map<string, number>();
  for (const { name, value } of bars.flatMap((bar) => bar.parts)) sums.set(name, (sums.get(name) ?? 0) + value);
  return [...sums].filter(([, value]) => value > 0).sort(([, a], [, b]) => b - a).map(([name]) => name);
}

/** Stacked bars over time. */
export function Bars({ bars, format, label, colour, onSelect }: { bars: Bar[]; /** Of bars that are not about models. */ colour?: string; format: (value: number) => string; label: string; onSelect?: (bar: Bar) => void }) {
  const [at, setAt] = useState<number>();
  const sum = (bar: Bar) => bar.parts.reduce((total, part) => total + part.value, 0);
  const most = Math.max(...bars.map(sum), 0);
  const height = 180;
  const distance = most > 0 ? lineDistance(most) : 1;
  const lines = [1, 2, 3, 4].map((times) => times * distance).filter((value) => value < most + distance);
  const scale = (height - 6) / Math.max(most, ...lines, 1e-9);
  const step = 100 / Math.max(bars.length, 1);
  const shown = at === undefined ? undefined : bars[at];
  const everyLabel = Math.ceil(bars.length / (innerWidth < 600 ? 4 : 10));
  return (
    <figure class="chart bars" onMouseLeave={() => setAt(undefined)}>
      <div class="scale dim" aria-hidden="true">{lines.map((value) => <span key={value} style={{ top: `${height - value * scale}px` }}>{format(value).replace(/\.0+(?=\D|$)/, "")}</span>)}</div>
      <svg viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" role="img" aria-label={`${label}. ${bars.map((bar) => `${bar.title}: ${format(sum(bar))}`).slice(-40).join("; ")}`}>
        {lines.map((value) => <line key={value} class="grid" x1="0" x2="100" y1={height - value * scale} y2={height - value * scale} />)}
        {bars.map((bar, index) => {
          let y = height;
          return (
            <g key={bar.title} class={at === index ? "on" : ""} onMouseEnter={() => setAt(index)} onClick={() => onSelect?.(bar)}>
              <rect class="hover" x={index * step} y={0} width={step} height={height} />
              {bar.parts.map((part) => {
                const size = part.value * scale;
                y -= size;
                return <rect key={part.name} style={{ fill: colour ?? colourOf(part.name) }} x={index * step + step * 0.12} y={y} width={step * 0.76} height={Math.max(size, 0)} />;
              })}
            </g>
          );
        })}
      </svg>
      <div class="axis dim" aria-hidden="true">
        {bars.map((bar, index) => (index % everyLabel === 0 ? <span key={bar.title} style={{ left: `${(index + 0.5) * step}%` }}>{bar.label}</span> : null))}
      </div>
      <figcaption aria-hidden="true">
        {shown ? <><strong>{shown.title}</strong> {format(sum(shown))} <span class="dim">{shown.parts.filter((part) => part.value > 0).sort((a, b) => b.value - a.value).slice(0, 4).map((part) => `${part.name} ${format(part.value)}`).join(" · ")}</span></>
          : <span class="dim">highest: {format(most)}</span>}
      </figcaption>
      {!colour && <p class="legend">{namesOf(bars).map((name) => <Chip key={name} model={name} />)}</p>}
    </figure>
  );
}

/** A line over the events of a session. The position is where the reader is. */
export function Line({ series, position, label, href }: { series: [number, number][]; position: number; label: string; href: (event: number) => string }) {
  const last = Math.max(series[series.length - 1]![0], position, 1);
  const most = Math.max(...series.map(([, value]) => value), 1);
  const width = 240;
  const height = 56;
  const points = series.map(([event, value]) => `${((event / last) * width).toFixed(1)},${(height - (value / most) * (height - 4)).toFixed(1)}`);
  const x = (Math.min(position, last) / last) * width;
  const go = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    navigate(href(Math.round(((event.clientX - box.left) / box.width) * last)));
  };
  return (
    <svg class="line" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label} onClick={go}>
      <polygon points={`0,${height} ${points.join(" ")} ${width},${height}`} />
      <polyline points={points.join(" ")} />
      <line class="cursor" x1={x} x2={x} y1="0" y2={height} />
    </svg>
  );
}

/** Returns the step of a value on a scale of four. The few largest do not hide the others. */
const level = (value: number, most: number) => (value <= 0 ? 0 : Math.min(4, 1 + Math.floor(Math.sqrt(value / most) * 3.999)));

const dayName = new Intl.DateTimeFormat("en", { weekday: "short", day: "numeric", month: "short" });
const monthName = new Intl.DateTimeFormat("en", { month: "short" });

/** A year of days, a column for each week. */
export function Calendar({ days, format, label, onSelect }: { days: Map<string, number>; format: (value: number) => string; label: string; onSelect: (day: string) => void }) {
  const [at, setAt] = useState<string>();
  const box = useRef<HTMLDivElement>(null);
  const keys = [...days.keys()].sort();
  const lastDay = keys[keys.length - 1];
  // The latest days are in sight, if there is no room for all.
  useLayoutEffect(() => { box.current?.scrollTo(box.current.scrollWidth, 0); }, [keys[0], lastDay]);
  if (!lastDay) return null;
  const end = new Date(`${lastDay}T12:00`);
  const first = new Date(`${keys[0]}T12:00`);
  const weeks = Math.min(53, Math.max(12, Math.ceil((end.getTime() - first.getTime()) / 604_800_000) + 1));
  const start = new Date(end);
  start.setDate(end.getDate() - ((end.getDay() + 6) % 7) - (weeks - 1) * 7);
  const most = Math.max(...days.values(), 1e-9);
  const cells = [];
  const months = [];
  for (let week = 0; week < weeks; week += 1) {
    for (let weekday = 0; weekday < 7; weekday += 1) {
      const date = new Date(start);
      date.setDate(start.getDate() + week * 7 + weekday);
      if (date > end) continue;
      const key = `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
      const value = days.get(key) ?? 0;
      if (weekday === 0 && date.getDate() <= 7 && week < weeks - 1) months.push(<text key={key} x={week * 14 + 26} y="9">{monthName.format(date)}</text>);
      cells.push(<rect key={key} class={`h${level(value, most)}`} x={week * 14 + 26} y={weekday * 14 + 14} width="11" height="11" rx="2"
        onMouseEnter={() => setAt(`${dayName.format(date)}: ${format(value)}`)} onClick={() => value > 0 && onSelect(key)} />);
    }
  }
  const total = [...days.values()].reduce((sum, value) => sum + value, 0);
  return (
    <figure class="chart heat" onMouseLeave={() => setAt(undefined)}>
      <div class="scroll" tabIndex={0} role="region" aria-label={label} ref={box}>
        <svg width={weeks * 14 + 28} height="114" role="img" aria-label={`${label}. ${days.size} days, ${format(total)} in all`}>
          {months}
          {["Mon", "Wed", "Fri"].map((name, at) => <text key={name} x="0" y={at * 28 + 24}>{name}</text>)}
          {cells}
        </svg>
      </div>
      <figcaption aria-hidden="true">{at ?? <span class="dim">{days.size} days with work</span>}</figcaption>
    </figure>
  );
}

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** The hours of the week. */
export function Hours({ cells, label }: { cells: number[][]; label: string }) {
  const [at, setAt] = useState<string>();
  const most = Math.max(...cells.flat(), 1e-9);
  return (
    <figure class="chart heat" onMouseLeave={() => setAt(undefined)}>
      <div class="scroll" tabIndex={0} role="region" aria-label={label}>
        <svg width={24 * 16 + 34} height="122" role="img" aria-label={`${label}. ${WEEKDAYS.map((name, day) => `${name} ${cells[day]!.reduce((sum, value) => sum + value, 0)}`).join("; ")}`}>
          {[0, 6, 12, 18].map((hour) => <text key={hour} x={hour * 16 + 32} y="9">{hour}:00</text>)}
          {WEEKDAYS.map((name, day) => (
            <g key={name}>
              <text x="0" y={day * 15 + 25}>{name}</text>
              {cells[day]!.map((value, hour) => <rect key={hour} class={`h${level(value, most)}`} x={hour * 16 + 32} y={day * 15 + 15} width="13" height="12" rx="2"
                onMouseEnter={() => setAt(`${name} ${hour}:00: ${value} events`)} />)}
            </g>
          ))}
        </svg>
      </div>
      <figcaption aria-hidden="true">{at ?? <span class="dim">events by hour of the week</span>}</figcaption>
    </figure>
  );
}

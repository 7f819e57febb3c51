// The quotas that agents record with their token counts: `300m 20% 1782095529; 10080m 55% 1782337450`.

import { Card } from "./parts";
import { ago, date, duration, time } from "./format";
import { useClock, useQuestion } from "./hooks";

interface Window {
  minutes: number;
  used: number;
  /** When it begins again, in milliseconds since 1970. */
  resets: number;
}

const SQL = "SELECT text, timestamp, provider FROM events WHERE event_type = 'token_usage' AND regexp_matches(text, '^[0-9]+m [0-9.]+% [0-9]+') ORDER BY timestamp DESC NULLS LAST LIMIT 1";

function parse(text: string): Window[] {
  return [...text.matchAll(/(\d+)m ([\d.]+)% (\d+)/g)].map((found) => ({ minutes: Number(found[1]), used: Number(found[2]), resets: Number(found[3]) * 1000 }));
}

/** Shows the latest quotas, if a log has some. */
export function Quota() {
  const now = useClock(60_000);
  const { data } = useQuestion("quota", {}, SQL, 1);
  const [text, timestamp, provider] = data?.rows?.[0] ?? [];
  if (!text) return null;
  const seen = `${String(timestamp).replace(" ", "T").replace(/Z?$/, "Z")}`;
  return (
    <Card title="Quota" width="full" note={`of ${provider}, seen ${ago(seen, now)}`}>
      <ul class="quota">
        {parse(text).map((window) => {
          // A window that began again has used nothing that a log knows of.
          const isOver = window.resets < now;
          const used = isOver ? 0 : window.used;
          const until = new Date(window.resets).toISOString();
          return (
            <li key={window.minutes}>
              <span>{duration(window.minutes * 60_000)}</span>
              <meter min={0} max={100} value={used} aria-label={`Used share of the ${duration(window.minutes * 60_000)} limit`} />
              <span class="value">{Math.round(used)} %</span>
              <span class="dim">{isOver ? `reset ${ago(until, now)}` : `resets ${date(until)} ${time(until)}`}</span>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

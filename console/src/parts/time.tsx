/** Times in words, with the exact time behind them. */
import { useSyncExternalStore } from "react";
import { ageText, agoText, exactText } from "./time-text.ts";

const STEP_MS = 1_000;
let nowMs = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** The time, which changes each second while something shows it. */
export function useNowMs(): number {
  return useSyncExternalStore(subscribe, () => nowMs);
}

/** `3 min ago` */
export function Ago({ atMs }: { readonly atMs: number }) {
  return <Exact atMs={atMs} text={agoText(atMs, useNowMs())} />;
}

/** `3m12s`: the time since then. */
export function Age({ atMs }: { readonly atMs: number }) {
  return <Exact atMs={atMs} text={ageText(atMs, useNowMs())} />;
}

function Exact({ atMs, text }: { readonly atMs: number; readonly text: string }) {
  return (
    <time dateTime={new Date(atMs).toISOString()} title={exactText(atMs)}>
      {text}
    </time>
  );
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  nowMs = Date.now();
  timer ??= setInterval(tick, STEP_MS);
  return () => {
    listeners.delete(changed);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function tick(): void {
  nowMs = Date.now();
  for (const changed of listeners) changed();
}

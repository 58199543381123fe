import { channel, tracingChannel } from "node:diagnostics_channel";
import { onTestFinished } from "vitest";

/** What a channel told, of one client. */
export type ChannelMessage = Record<string, unknown> & { client: string; name: string; call: number };

/** Collects what a point channel tells of a client, until the test has ended. */
export function watchPoint(name: string, client: string): ChannelMessage[] {
  const heard: ChannelMessage[] = [];
  const listener = (message: unknown): void => {
    if ((message as ChannelMessage).client === client) heard.push(message as ChannelMessage);
  };
  channel(name).subscribe(listener);
  onTestFinished(() => void channel(name).unsubscribe(listener));
  return heard;
}

/**
 * Collects what a tracing channel tells of a client, as `start order:42`, and the messages of those
 * that have ended.
 */
export function watchTrace(
  name: string,
  client: string,
  on: Partial<Record<"start" | "asyncEnd" | "error", (message: ChannelMessage) => void>> = {},
): { steps: string[]; ended: ChannelMessage[]; stop(): void } {
  const steps: string[] = [];
  const ended: ChannelMessage[] = [];
  const step = (what: "start" | "end" | "asyncStart" | "asyncEnd" | "error") => (told: object) => {
    const message = told as ChannelMessage;
    if (message.client !== client) return;
    steps.push(what);
    if (what === "asyncEnd") ended.push(message);
    if (what !== "end" && what !== "asyncStart") on[what]?.(message);
  };
  const listeners = {
    start: step("start"),
    end: step("end"),
    asyncStart: step("asyncStart"),
    asyncEnd: step("asyncEnd"),
    error: step("error"),
  };
  const traced = tracingChannel<unknown, object>(name);
  traced.subscribe(listeners);
  let isOver = false;
  const stop = (): void => {
    if (!isOver) traced.unsubscribe(listeners);
    isOver = true;
  };
  onTestFinished(stop);
  return { steps, ended, stop };
}

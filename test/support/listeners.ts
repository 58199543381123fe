import { type MockInstance, onTestFinished, vi } from "vitest";
import type { Listener, ListenerEvents, Place } from "../../src/redis/driver.ts";
import { linkOf } from "./link.ts";

/** A connection for messages, as the test sees it. */
interface Watched {
  /** Channels whose SUBSCRIBE was acknowledged. */
  readonly channels: Set<string>;
  /** How often it was lost, or a reconnect failed. */
  losses: number;
  /** Its client has closed it, and it has no connection any more. */
  readonly isClosed: boolean;
}

export interface Listeners {
  readonly made: readonly Watched[];
  /** The messages that all of them have read. */
  readonly heard: string[];
}

/**
 * The message connections that lock clients on this connection open from now on, to the end of the
 * test.
 */
export function listenersOf(connection: object): Listeners {
  const link = linkOf(connection);
  const made: Watched[] = [];
  const heard: string[] = [];
  const spies: MockInstance[] = [];
  const seen = new WeakSet<Place>();
  const watch = <P extends Place | null>(place: P): P => {
    if (!place || seen.has(place)) return place;
    seen.add(place);
    const listen = place.listen.bind(place);
    const spy = vi.spyOn(place as Place, "listen").mockImplementation((isSharded, events) => {
      const { watched, between, wrap } = watching(events, heard);
      const listener = wrap(listen(isSharded, between));
      made.push(watched);
      return listener;
    });
    spies.push(spy);
    return place;
  };
  watch<Place>(link);
  if (link.nodes) {
    const { nodes } = link;
    const placeOf = nodes.placeOf.bind(nodes);
    spies.push(vi.spyOn(nodes, "placeOf").mockImplementation((slot) => watch(placeOf(slot))));
  }
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
  });
  return { made, heard };
}

function watching(
  events: ListenerEvents,
  heard: string[],
): {
  watched: Watched;
  between: ListenerEvents;
  wrap(listener: Listener): Listener;
} {
  let inner: Listener | undefined;
  let isClosed = false;
  const watched = {
    channels: new Set<string>(),
    losses: 0,
    get isClosed() {
      return isClosed && inner?.isReady === false;
    },
  };
  const between: ListenerEvents = {
    ...events,
    message(channel, message) {
      heard.push(message);
      events.message(channel, message);
    },
    lost(error) {
      watched.losses++;
      watched.channels.clear();
      events.lost(error);
    },
  };
  const wrap = (listener: Listener): Listener => {
    inner = listener;
    return {
      get isReady() {
        return listener.isReady;
      },
      async subscribe(channels) {
        const reply = await listener.subscribe(channels);
        for (const channel of channels) watched.channels.add(channel);
        return reply;
      },
      unsubscribe(channel) {
        watched.channels.delete(channel);
        listener.unsubscribe(channel);
      },
      close() {
        isClosed = true;
        listener.close();
      },
    };
  };
  return { watched, between, wrap };
}

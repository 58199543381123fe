import { type Actor, type Event, INPUT, type Time } from "./time.ts";

/** In ms: two packets of one direction are never at the same time. */
const GAP = 0.001;

interface Packet {
  readonly arrive: () => void;
  event: Event;
}

/** One direction of a connection: packets arrive in order. */
export class Way {
  readonly #time: Time;
  /** Whose events the arrivals are. */
  readonly #to: Actor | null;
  /** Those under way, the oldest first. */
  readonly #packets = new Set<Packet>();
  /** When the last one arrives. */
  last = 0;

  constructor(time: Time, to: Actor | null) {
    this.#time = time;
    this.#to = to;
  }

  /** It arrives at this time, or after the one before. */
  send(at: number, arrive: () => void): void {
    const packet: Packet = { arrive, event: this.#event(at, () => this.#arrive(packet)) };
    this.#packets.add(packet);
  }

  /** Those under way arrive no sooner. */
  hold(until: number): void {
    this.last = 0;
    for (const packet of this.#packets) {
      packet.event.isOff = true;
      packet.event = this.#event(Math.max(packet.event.at, until), () => this.#arrive(packet));
    }
  }

  #event(at: number, run: () => void): Event {
    this.last = Math.max(this.last + GAP, at);
    return this.#time.at(this.last, INPUT, this.#to, run);
  }

  #arrive(packet: Packet): void {
    this.#packets.delete(packet);
    packet.arrive();
  }
}

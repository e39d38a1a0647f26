/** Plays a call of grpc-js for the handlers of RPCs, so that each RPC has one implementation. */
import { EventEmitter } from "node:events";
import type { handleServerStreamingCall, handleUnaryCall, Metadata, StatusObject } from "@grpc/grpc-js";
import type { Decoded } from "../rpc/service-definition.ts";

/** As grpc-js: a stream keeps this many messages for a client that reads slowly. */
const MESSAGES_MAX = 16;

export type HttpCallFacts = {
  readonly metadata: Metadata;
  readonly peer: string;
  readonly request: Decoded;
  /** Aborted when the client leaves, when its deadline passes, or when the answer was given. */
  readonly signal: AbortSignal;
  /** Gets the headers of the response. */
  readonly onHeader: (metadata: Metadata) => void;
};

/** What a handler ended its call with. */
export class CallFailure extends Error {
  override readonly name = "CallFailure";
  readonly status: Partial<StatusObject>;

  constructor(status: Partial<StatusObject>) {
    super(status.details ?? "");
    this.status = status;
  }
}

/** The part of a call of grpc-js that handlers use. */
export class HttpCall extends EventEmitter {
  readonly metadata: Metadata;
  readonly request: Decoded;
  cancelled = false;
  readonly #facts: HttpCallFacts;
  readonly #waiting: { readonly message: Buffer; readonly sent: (() => void) | undefined }[] = [];
  #isFull = false;
  #ended: { readonly failure: unknown } | null = null;
  #wake = () => {};

  constructor(facts: HttpCallFacts) {
    super();
    this.#facts = facts;
    this.metadata = facts.metadata;
    this.request = facts.request;
    this.on("error", (status: Partial<StatusObject>) => this.#end(new CallFailure(status)));
    if (facts.signal.aborted) this.#cancel();
    else facts.signal.addEventListener("abort", () => this.#cancel(), { once: true });
  }

  getPeer(): string {
    return this.#facts.peer;
  }

  sendMetadata(metadata: Metadata): void {
    this.#facts.onHeader(metadata);
  }

  /** False: the stream is full until the event `drain`. `sent` is called once the message is on its way. */
  write(message: Buffer, sent?: () => void): boolean {
    if (this.#ended !== null) return true;
    this.#waiting.push({ message, sent });
    this.#wake();
    this.#isFull = this.#waiting.length >= MESSAGES_MAX;
    return !this.#isFull;
  }

  end(): void {
    this.#end(null);
  }

  /** Runs a unary handler. Throws a `CallFailure`, or the reason of the signal. */
  async answer(handler: handleUnaryCall<Decoded, Buffer>): Promise<Buffer> {
    const { signal } = this.#facts;
    return await new Promise<Buffer>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      handler(this as never, (failure, response) => {
        if (failure) reject(new CallFailure(failure));
        else resolve(response ?? Buffer.alloc(0));
      });
    });
  }

  /** Runs a handler that streams: yields its messages, no faster than they are asked for. */
  async *messages(handler: handleServerStreamingCall<Decoded, Buffer>): AsyncGenerator<Buffer> {
    handler(this as never);
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        yield next.message;
        next.sent?.();
        this.#drain();
      } else if (this.#ended !== null) {
        if (this.#ended.failure !== null) throw this.#ended.failure;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #drain(): void {
    if (!this.#isFull || this.#waiting.length > 0) return;
    this.#isFull = false;
    this.emit("drain");
  }

  #end(failure: unknown): void {
    this.#ended ??= { failure };
    this.#wake();
  }

  #cancel(): void {
    this.cancelled = true;
    this.#end(this.#facts.signal.reason);
    this.emit("cancelled");
  }
}

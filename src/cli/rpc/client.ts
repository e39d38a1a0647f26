import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { CallError, STATUS } from "./call-error.ts";
import { type Channel, type ChannelCall, type ChannelSecurity, openChannel, PLAIN } from "./channel.ts";

/** Calls the service at one address. A failed call throws a `CallError`. */
export type GangwayClient = {
  readonly address: string;
  readonly call: <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    within?: CallBounds,
  ) => Promise<MessageShape<O>>;
  /** Throws a CallError of code CANCELLED once `signal` is aborted. */
  readonly stream: <I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
  ) => AsyncIterable<MessageShape<O>>;
  /** The version that the service tells; null if it tells none. */
  readonly serverVersion: () => Promise<string | null>;
  readonly close: () => void;
};

/** How long a call may take, its connection included, and what else cancels it. */
export type CallBounds = { readonly timeoutMs: number; readonly signal: AbortSignal };

const CALL_TIMEOUT_MS = 30_000;
/** Room for a page of 1,000 jobs with templates. */
const LIMITS = { sentBytesMax: 16 * 1024 * 1024, receivedBytesMax: 256 * 1024 * 1024 };

/** How long several addresses have to take a connection. */
const CONNECT_MS_MAX = 5_000;

/**
 * Makes a client of the service at HOST:PORT, or at several with commas. It connects at the first call, with several
 * addresses to the one that answers first. After a failed call it asks another address, which may answer while the one
 * before still takes connections. `signal` cancels every call. Without `security`, calls are not encrypted and show no
 * token.
 */
export function connect(addresses: string, signal: AbortSignal, security: ChannelSecurity = PLAIN): GangwayClient {
  const channels = addresses.split(",").map((address) => openChannel(address, LIMITS, security));
  const choice = new ChannelChoice(channels);
  const unary = async <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    of: Partial<CallBounds> & Pick<ChannelCall, "onHeaders"> = {},
  ): Promise<MessageShape<O>> => {
    const { timeoutMs = CALL_TIMEOUT_MS, signal: own, ...rest } = of;
    const startedMs = performance.now();
    const channel = await choice.choose(Math.min(CONNECT_MS_MAX, timeoutMs / 2));
    const leftMs = Math.max(1, timeoutMs - (performance.now() - startedMs));
    const signals = own === undefined ? [signal] : [signal, own];
    const answer = channel.call({ ...encoded(method, request), ...rest, signals, timeoutMs: leftMs });
    let message: MessageShape<O> | null = null;
    for await (const bytes of answer) message = fromBinary(method.output, bytes);
    if (message === null) throw new CallError(STATUS.INTERNAL, `${pathOf(method)} returned no response`);
    return message;
  };
  let hasWorked = false;
  const forget = async (error: unknown): Promise<never> => {
    choice.failed();
    // A connection that has worked breaks for other reasons. Only a failure loads this code.
    const isNew = error instanceof CallError && (!hasWorked || error.code !== STATUS.UNAVAILABLE);
    if (isNew) error.remedy = await (await import("./remedies.ts")).remedyOf(error, { address: addresses, security });
    throw error;
  };
  return {
    address: addresses,
    call: async (method, request, within) => {
      const message = await unary(method, request, within).catch(forget);
      hasWorked = true;
      return message;
    },
    async *stream(method, request, streamSignal) {
      try {
        const channel = await choice.choose(CONNECT_MS_MAX);
        const answer = channel.call({ ...encoded(method, request), signals: [signal, streamSignal] });
        for await (const bytes of answer) {
          hasWorked = true;
          yield fromBinary(method.output, bytes);
        }
      } catch (error) {
        await forget(error);
      }
    },
    serverVersion: async () => {
      const { Health } = await import("../../gen/grpc/health/v1/health_pb.ts");
      let version: string | null = null;
      const onHeaders: ChannelCall["onHeaders"] = (headers) => {
        version = headers["gangway-version"]?.toString() ?? null;
      };
      await unary(Health.method.check, {}, { onHeaders });
      return version;
    },
    close: () => {
      for (const channel of channels) channel.close();
    },
  };
}

/** The channel that calls use now. */
class ChannelChoice {
  readonly #channels: readonly Channel[];
  #chosen: Promise<Channel> | null = null;
  /** The channel that was chosen last. */
  #last: Channel | null = null;
  /** The channel whose call failed last: it is asked only if no other takes a connection. */
  #avoided: Channel | null = null;

  constructor(channels: readonly Channel[]) {
    if (channels.length === 0) throw new Error("a client needs an address");
    this.#channels = channels;
  }

  choose(connectMs: number): Promise<Channel> {
    this.#chosen ??= this.#pick(connectMs).then((channel) => {
      this.#last = channel;
      return channel;
    });
    return this.#chosen;
  }

  failed(): void {
    this.#chosen = null;
    this.#avoided = this.#last;
  }

  async #pick(connectMs: number): Promise<Channel> {
    const fallback = this.#avoided ?? this.#channels[0];
    const others = this.#channels.filter((channel) => channel !== this.#avoided);
    if (fallback === undefined || this.#channels.length === 1) return fallback as Channel;
    return Promise.any(others.map((channel) => channel.ready(connectMs).then(() => channel))).catch(() => fallback);
  }
}

function encoded<I extends DescMessage>(method: DescMethod & { readonly input: I }, request: MessageInitShape<I>) {
  return { path: pathOf(method), message: toBinary(method.input, create(method.input, request)) };
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

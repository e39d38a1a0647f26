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

const CALL_TIMEOUT_MS = 30_000;
/** Room for a page of 1,000 jobs with templates. */
const LIMITS = { sentBytesMax: 16 * 1024 * 1024, receivedBytesMax: 256 * 1024 * 1024 };

/** How long several addresses have to take a connection. */
const CONNECT_MS_MAX = 5_000;

/**
 * Makes a client of the service at HOST:PORT, or at several with commas. It connects at the first call, with several
 * addresses to the one that answers first; after a failed call it chooses again. `signal` cancels every call. Without
 * `security`, calls are not encrypted and show no token.
 */
export function connect(addresses: string, signal: AbortSignal, security: ChannelSecurity = PLAIN): GangwayClient {
  const channels = addresses.split(",").map((address) => openChannel(address, LIMITS, security));
  const [first] = channels;
  if (first === undefined) throw new Error("a client needs an address");
  let chosen: Promise<Channel> | null = null;
  const choose = (): Promise<Channel> => {
    chosen ??= channels.length === 1 ? Promise.resolve(first) : firstReady(channels).catch(() => first);
    return chosen;
  };
  const forget = (error: unknown): never => {
    chosen = null;
    throw error;
  };
  const unary = async <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    onHeaders?: ChannelCall["onHeaders"],
  ): Promise<MessageShape<O>> => {
    const call = { ...encoded(method, request), signals: [signal], timeoutMs: CALL_TIMEOUT_MS };
    const answer = (await choose()).call(onHeaders === undefined ? call : { ...call, onHeaders });
    let message: MessageShape<O> | null = null;
    for await (const bytes of answer) message = fromBinary(method.output, bytes);
    if (message === null) throw new CallError(STATUS.INTERNAL, `${pathOf(method)} returned no response`);
    return message;
  };
  return {
    address: addresses,
    call: (method, request) => unary(method, request).catch(forget),
    async *stream(method, request, streamSignal) {
      try {
        const channel = await choose();
        const answer = channel.call({ ...encoded(method, request), signals: [signal, streamSignal] });
        for await (const bytes of answer) yield fromBinary(method.output, bytes);
      } catch (error) {
        forget(error);
      }
    },
    serverVersion: async () => {
      const { Health } = await import("../../gen/grpc/health/v1/health_pb.ts");
      let version: string | null = null;
      await unary(Health.method.check, {}, (headers) => {
        version = headers["gangway-version"]?.toString() ?? null;
      });
      return version;
    },
    close: () => {
      for (const channel of channels) channel.close();
    },
  };
}

/** Rejects if none of them connects in time. */
function firstReady(channels: readonly Channel[]): Promise<Channel> {
  return Promise.any(channels.map((channel) => channel.ready(CONNECT_MS_MAX).then(() => channel)));
}

function encoded<I extends DescMessage>(method: DescMethod & { readonly input: I }, request: MessageInitShape<I>) {
  return { path: pathOf(method), message: toBinary(method.input, create(method.input, request)) };
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

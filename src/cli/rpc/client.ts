import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, type Metadata } from "@grpc/grpc-js";
import { Health } from "../../gen/grpc/health/v1/health_pb.ts";
import { linkedController } from "../../runtime/linked-controller.ts";

/** Calls the service at one address. A failed call throws the `ServiceError` of grpc-js. */
export type GangwayClient = {
  readonly address: string;
  readonly call: <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ) => Promise<MessageShape<O>>;
  /** Throws a ServiceError of code CANCELLED once `signal` is aborted. */
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
/** A page of 1,000 jobs with templates is larger than the default of grpc-js, 4 MiB. */
const RECEIVE_BYTES_MAX = 256 * 1024 * 1024;
const SEND_BYTES_MAX = 16 * 1024 * 1024;

/** How long several addresses have to take a connection. */
const CONNECT_MS_MAX = 5_000;

/**
 * Makes a client of the service at HOST:PORT, or at several with commas. It connects at the first call, with several
 * addresses to the one that answers first; after a failed call it chooses again. `signal` cancels every call.
 */
export function connect(addresses: string, signal: AbortSignal): GangwayClient {
  const clients = addresses.split(",").map(clientOf);
  const [first] = clients;
  if (first === undefined) throw new Error("a client needs an address");
  let chosen: Promise<Client> | null = null;
  const choose = (): Promise<Client> => {
    chosen ??= clients.length === 1 ? Promise.resolve(first) : firstReady(clients).catch(() => first);
    return chosen;
  };
  const forget = (error: unknown): never => {
    chosen = null;
    throw error;
  };
  return {
    address: addresses,
    call: async (method, request) => unary(await choose(), method, request, signal).catch(forget),
    async *stream(method, request, streamSignal) {
      try {
        yield* serverStream(await choose(), method, request, [signal, streamSignal]);
      } catch (error) {
        forget(error);
      }
    },
    serverVersion: async () => {
      let version: string | null = null;
      const onHeader = (header: Metadata) => {
        version = header.get("gangway-version")[0]?.toString() ?? null;
      };
      await unary(await choose(), Health.method.check, {}, signal, onHeader);
      return version;
    },
    close: () => {
      for (const client of clients) client.close();
    },
  };
}

function clientOf(address: string): Client {
  return new Client(address, credentials.createInsecure(), {
    "grpc.max_receive_message_length": RECEIVE_BYTES_MAX,
    "grpc.max_send_message_length": SEND_BYTES_MAX,
    // A proxy from the environment cannot reach the loopback addresses of this machine.
    ...(isLoopback(address) ? { "grpc.enable_http_proxy": 0 } : {}),
  });
}

/** Rejects if none of them connects in time. */
function firstReady(clients: readonly Client[]): Promise<Client> {
  const deadline = Date.now() + CONNECT_MS_MAX;
  const ready = (client: Client) =>
    new Promise<Client>((resolve, reject) => {
      client.waitForReady(deadline, (error) => (error ? reject(error) : resolve(client)));
    });
  return Promise.any(clients.map(ready));
}

function isLoopback(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(":"));
  return host === "localhost" || host === "[::1]" || host.startsWith("127.");
}

function unary<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  signal: AbortSignal,
  onHeader: (header: Metadata) => void = () => {},
): Promise<MessageShape<O>> {
  return new Promise((resolve, reject) => {
    const cancel = () => call.cancel();
    const call = client.makeUnaryRequest(
      pathOf(method),
      encoder(method.input),
      decoder(method.output),
      create(method.input, request),
      { deadline: Date.now() + CALL_TIMEOUT_MS },
      (error, response) => {
        signal.removeEventListener("abort", cancel);
        if (error !== null) reject(error);
        else if (response === undefined) reject(new Error(`${pathOf(method)} returned no response`));
        else resolve(response);
      },
    );
    call.on("metadata", onHeader);
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
  });
}

async function* serverStream<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  signals: readonly AbortSignal[],
): AsyncGenerator<MessageShape<O>> {
  const call = client.makeServerStreamRequest(
    pathOf(method),
    encoder(method.input),
    decoder(method.output),
    create(method.input, request),
  );
  const cancel = () => call.cancel();
  using left = linkedController(...signals);
  left.signal.addEventListener("abort", cancel, { once: true });
  if (left.signal.aborted) cancel();
  try {
    for await (const message of call) yield message as MessageShape<O>;
  } finally {
    // A cancelled call emits one more error. It would crash the process without this listener.
    call.on("error", () => {});
    call.cancel();
  }
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function encoder<D extends DescMessage>(schema: D) {
  return (message: MessageShape<D>): Buffer => Buffer.from(toBinary(schema, message));
}

function decoder<D extends DescMessage>(schema: D) {
  return (bytes: Buffer): MessageShape<D> => fromBinary(schema, bytes);
}

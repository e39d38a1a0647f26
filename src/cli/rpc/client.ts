import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
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
  readonly close: () => void;
};

const CALL_TIMEOUT_MS = 30_000;
/** A page of 1,000 jobs with templates is larger than the default of grpc-js, 4 MiB. */
const RECEIVE_BYTES_MAX = 256 * 1024 * 1024;
const SEND_BYTES_MAX = 16 * 1024 * 1024;

/** Makes a client of the service at HOST:PORT. It connects at the first call. `signal` cancels every call. */
export function connect(address: string, signal: AbortSignal): GangwayClient {
  const client = new Client(address, credentials.createInsecure(), {
    "grpc.max_receive_message_length": RECEIVE_BYTES_MAX,
    "grpc.max_send_message_length": SEND_BYTES_MAX,
    // A proxy from the environment cannot reach the loopback addresses of this machine.
    ...(isLoopback(address) ? { "grpc.enable_http_proxy": 0 } : {}),
  });
  return {
    address,
    call: (method, request) => unary(client, method, request, signal),
    stream: (method, request, streamSignal) => serverStream(client, method, request, [signal, streamSignal]),
    close: () => client.close(),
  };
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

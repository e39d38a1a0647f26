import { Server, ServerCredentials } from "@grpc/grpc-js";

const pass = (bytes: Buffer) => bytes;
const UNARY = {
  requestStream: false,
  responseStream: false,
  requestSerialize: pass,
  requestDeserialize: pass,
  responseSerialize: pass,
  responseDeserialize: pass,
};

type Call = { readonly request: Buffer };
type Answer = (error: Error | null, value?: Buffer) => void;

/**
 * A gRPC server on loopback whose calls, by path, do some work. Each then answers the bytes that the work returned, or
 * else those of the request.
 */
export async function startBareServer(
  work: Readonly<Record<string, (request: Buffer) => Promise<unknown>>>,
): Promise<{ readonly address: string; readonly close: () => void }> {
  const server = new Server();
  const calls = Object.entries(work);
  server.addService(
    Object.fromEntries(calls.map(([path]) => [path, { path, ...UNARY }])),
    Object.fromEntries(
      calls.map(([path, run]) => [
        path,
        ({ request }: Call, answer: Answer) =>
          void run(request).then((made) => answer(null, Buffer.isBuffer(made) ? made : request), answer),
      ]),
    ),
  );
  const port = await new Promise<number>((resolve, reject) => {
    const bound = (error: Error | null, at: number) => (error === null ? resolve(at) : reject(error));
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), bound);
  });
  return { address: `127.0.0.1:${port}`, close: () => server.forceShutdown() };
}

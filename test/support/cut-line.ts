import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A proxy to a server: `cut` ends every connection and refuses new ones until `mend`. */
export async function cutLine(to: { readonly host: string; readonly port: number }) {
  const sockets = new Set<Socket>();
  let open = true;
  const server = createServer((near) => {
    if (!open) return void near.destroy();
    const far = connect(to);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  const cut = () => {
    open = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    cut,
    mend: () => {
      open = true;
    },
    close: async () => {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}

/** The address of the same database through the proxy. */
export async function lineTo(url: string) {
  const target = new URL(url);
  const line = await cutLine({ host: target.hostname, port: Number(target.port || 5432) });
  target.hostname = "127.0.0.1";
  target.port = String(line.port);
  return { ...line, url: target.href };
}

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/**
 * A proxy to a server: `cut` ends every connection and refuses new ones until `mend`. `turns` counts how often a client
 * has sent something first or after an answer.
 */
export async function cutLine(to: { readonly host: string; readonly port: number }) {
  const sockets = new Set<Socket>();
  let open = true;
  let turns = 0;
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
    let isAnswered = true;
    near.on("data", () => {
      if (isAnswered) turns += 1;
      isAnswered = false;
    });
    far.on("data", () => {
      isAnswered = true;
    });
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
    turns: () => turns,
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

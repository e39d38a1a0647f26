import { Metadata } from "@grpc/grpc-js";

/** The client, with a token in the metadata of each call. */
export function withToken<Client extends object>(client: Client, token: string): Client {
  const metadata = () => {
    const made = new Metadata();
    made.set("authorization", `Bearer ${token}`);
    return made;
  };
  return new Proxy(client, {
    get: (target, name) => {
      const member = Reflect.get(target, name) as (...of: unknown[]) => unknown;
      if (name === "makeUnaryRequest")
        return (...[path, serialize, parse, request, ...rest]: unknown[]) =>
          member.call(target, path, serialize, parse, request, metadata(), ...rest);
      if (name === "makeServerStreamRequest")
        return (...[path, serialize, parse, request]: unknown[]) =>
          member.call(target, path, serialize, parse, request, metadata());
      return member;
    },
  });
}

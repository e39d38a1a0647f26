/** Logging in and out, at the paths below `/auth`. */

/** What the service offers. */
export type LoginMethods = {
  /** False: the service asks nobody for credentials. */
  readonly needed: boolean;
  /** True: it takes a token that the user pastes. */
  readonly token: boolean;
  /** The issuer at which people log in. Null: there is none. */
  readonly issuer: string | null;
  /** Who is logged in. Null: nobody. */
  readonly caller: { readonly subject: string } | null;
};

export async function loginMethods(signal: AbortSignal): Promise<LoginMethods> {
  return await answered(await fetch("/auth/methods", { signal }));
}

/** Throws an error with the service's sentence if the token is refused. */
export async function logInWithToken(token: string): Promise<void> {
  await answered(await fetch("/auth/token", post({ token })));
}

export async function logOut(): Promise<void> {
  await answered(await fetch("/auth/logout", post({})));
}

/** Where the browser goes to log in at the issuer. It comes back to `path`. */
export function issuerLoginPath(path: string): string {
  return `/auth/login?${new URLSearchParams({ to: path })}`;
}

function post(body: object): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

async function answered<T>(response: Response): Promise<T> {
  const body: unknown = await response.json();
  if (response.ok) return body as T;
  const { message } = body as { readonly message?: string };
  throw new Error(message ?? `the service answers with status ${response.status}`);
}

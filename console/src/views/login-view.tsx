/** Shown where the service asks for credentials and does not know the browser. */
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { View } from "../parts/view.tsx";
import { issuerLoginPath, type LoginMethods, logInWithToken, loginMethods } from "../rpc/login.ts";

export function LoginView() {
  const query = useQuery({ queryKey: ["login"], queryFn: ({ signal }) => loginMethods(signal) });
  return (
    <main className="view">
      <div className="state login">
        <h1>Sign in</h1>
        <View query={query} what="the ways to sign in">
          {(methods) => <Ways methods={methods} />}
        </View>
      </div>
    </main>
  );
}

function Ways({ methods: { token, issuer } }: { readonly methods: LoginMethods }) {
  const here = window.location.pathname + window.location.search;
  return (
    <>
      {issuer !== null && (
        <p>
          <a className="button" href={issuerLoginPath(here)}>
            Sign in at {issuer}
          </a>
        </p>
      )}
      {token && <TokenForm />}
      {issuer === null && !token && (
        <p>
          This service takes no login of browsers: it has no key to encrypt sessions with, or knows callers by
          certificates alone. Use the command line: <code>gangway login --help</code>
        </p>
      )}
    </>
  );
}

function TokenForm() {
  const [problem, setProblem] = useState("");
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token") ?? "").trim();
    logInWithToken(token).then(
      () => window.location.reload(),
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <form onSubmit={send}>
      <label>
        Token of a robot or a service account
        <input name="token" type="password" autoComplete="off" required />
      </label>
      <button type="submit">Sign in</button>
      {problem !== "" && (
        <p className="note warning" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}

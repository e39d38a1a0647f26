/** Shown where the service asks for credentials and the browser has none. */
export function LoginView() {
  return (
    <main className="view">
      <div className="state" role="alert">
        <h1>Sign in</h1>
        <p>This service asks for credentials, and has no login for browsers yet. Use the command line: gangway login</p>
      </div>
    </main>
  );
}

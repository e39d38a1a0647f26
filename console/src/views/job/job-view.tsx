export function JobView({
  namespace,
  name,
}: {
  readonly namespace: string;
  readonly name: string;
  readonly search: URLSearchParams;
}) {
  return (
    <main className="view">
      {namespace}/{name}
    </main>
  );
}

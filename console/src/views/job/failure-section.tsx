/** Why a job failed, and the last lines of its containers that did. */
import { FailureKind } from "../../../../src/gen/gangway/v1/job_pb.ts";
import type { ExplainJobResponse } from "../../../../src/gen/gangway/v1/job_service_pb.ts";

/** So many containers are shown with their lines; the logs have the others. */
const LOGS_SHOWN = 2;

export function FailureSection({ answer }: { readonly answer: ExplainJobResponse }) {
  const { failure, failureLogs } = answer;
  const logs = failureLogs?.logs.slice(0, LOGS_SHOWN) ?? [];
  return (
    <>
      {failure !== undefined && (
        <dl className="facts">
          <Fact name="Failure">{failure.code}</Fact>
          <Fact name="Cause">{failure.kind === FailureKind.SYSTEM ? "the platform" : "the program"}</Fact>
          {failure.container !== "" && <Fact name="Container">{failure.container}</Fact>}
          {failure.exitCode !== undefined && <Fact name="Exit code">{failure.exitCode}</Fact>}
        </dl>
      )}
      {logs.map((log) => (
        <figure key={`${log.replica} ${log.attempt} ${log.container}`} className="kept-log">
          <figcaption>
            {log.replica}, container {log.container}, attempt {log.attempt}: exit code {log.exitCode}
            {log.reason !== "" && `, ${log.reason}`}. {log.cut ? "Its last lines:" : "All of its lines:"}
          </figcaption>
          {log.problem === "" ? (
            <pre>{log.text === "" ? "It wrote nothing." : log.text}</pre>
          ) : (
            <p>
              {log.problem}: {log.problemMessage}
            </p>
          )}
        </figure>
      ))}
      {failureLogs !== undefined && failureLogs.leftOut !== "" && <p className="note">{failureLogs.leftOut}</p>}
    </>
  );
}

export function Fact({ name, children }: { readonly name: string; readonly children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

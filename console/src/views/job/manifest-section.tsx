/** Everything that the service says of a job, as text. */
import { toJson } from "@bufbuild/protobuf";
import { JobSchema } from "../../../../src/gen/gangway/v1/job_pb.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { View } from "../../parts/view.tsx";
import type { JobName } from "../../router/path.ts";
import { useFullJob } from "./use-job.ts";
import { type Json, yamlText } from "./yaml-text.ts";

export function ManifestSection({ name }: { readonly name: JobName }) {
  const query = useFullJob(name);
  return (
    <View query={query} what="the job">
      {({ job }) => {
        const text = job === undefined ? "" : yamlText(toJson(JobSchema, job) as Json);
        return (
          <div className="text-block">
            <CopyButton text={text} />
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls is reached by keys */}
            <pre tabIndex={0}>{text}</pre>
          </div>
        );
      }}
    </View>
  );
}

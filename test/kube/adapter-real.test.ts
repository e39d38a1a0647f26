import { suite } from "node:test";
import { adapterSuite } from "./adapter-suite.ts";
import { controlPlaneBuilt } from "./build.ts";
import { realSubject } from "./subject.ts";

suite("on real API servers", { skip: !controlPlaneBuilt() }, () => {
  adapterSuite("one API server", realSubject);
  adapterSuite("another API server", realSubject);
});

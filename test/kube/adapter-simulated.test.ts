import { adapterSuite } from "./adapter-suite.ts";
import { simulatedSubject } from "./subject.ts";

adapterSuite("the simulated cluster", simulatedSubject);

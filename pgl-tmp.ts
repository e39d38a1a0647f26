import { PGlite } from "@electric-sql/pglite";
import { migrate } from "/work/wt/pg/src/adapters/store/migrate.ts";
let t=performance.now(), c=process.cpuUsage();
const lap=(w:string)=>{const d=process.cpuUsage(c);console.log(w,Math.round(performance.now()-t),"ms cpu",(d.user+d.system)/1000|0);t=performance.now();c=process.cpuUsage()};
const a=await PGlite.create(); lap("fresh");
await migrate({query: async (text:any, params:any)=> params!==undefined? a.query(text,[...params]) : {rows:(await a.exec(text)).at(-1)?.rows ?? []}} as any); lap("migrate");
const blob=await a.dumpDataDir("none"); lap("dump "+blob.size);
const b=await PGlite.create({loadDataDir: blob}); lap("load");
await b.query("select 1"); lap("q");

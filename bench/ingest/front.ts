import { runFront } from '#ingest'
import { silentLogger } from '#runtime'

/* A process that carries streams for `ours.ts`, as `manager` starts them with INGESTER_PROCESSES. */

await runFront({ logger: silentLogger })
process.exit(0)

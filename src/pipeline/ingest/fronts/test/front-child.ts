import { silentLogger } from '#runtime'
import { runFront } from '../front.ts'

await runFront({ logger: silentLogger })
process.exit(0)

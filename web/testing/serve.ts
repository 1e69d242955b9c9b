import { join } from 'node:path'
import { someCustoms } from './customs.ts'
import { FakeHub } from './fake-hub.ts'
import { aTroubledPast } from './histories.ts'
import { demoFleet } from './worlds.ts'

// `npx tsx web/testing/serve.ts [port] [folder of the built page]`: the built page over a fixed fleet, for looking at it while it is made.
const hub = new FakeHub({ root: process.argv[3] ?? join(import.meta.dirname, '../../dist/web') }).fill(
  demoFleet(Date.now()),
)
hub.customs = someCustoms(Date.now())
hub.pasts.set('eu-prod-2', aTroubledPast(Date.now()))
const heartbeat = setInterval(() => hub.say({ kind: 'heartbeat', now: hub.now() }), 15_000)
console.log(await hub.start(Number(process.argv[2] ?? 0)))
process.once('SIGINT', () => {
  clearInterval(heartbeat)
  void hub.stop()
})

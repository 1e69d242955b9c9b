import { fileURLToPath } from 'node:url'
import { soleOwner } from '#model'
import { KeptProcess } from '#processes'
import { keepHeapTight, silentLogger } from '#runtime'
import { beginDivision } from '#state'
import { type HubOptions, openHub } from './hub.ts'
import type { FromOwner, ToOwner } from './owner.ts'
import { serveBencher } from './process.ts'

/* Our hub: one process, or several that share the clusters and one port. */

keepHeapTight()

const options = JSON.parse(process.argv[2] ?? '{}') as HubOptions

if (options.owners === undefined) {
  const hub = await openHub(options, soleOwner, 0)
  serveBencher(hub.port, hub.settle)
} else await serveSeveral(options.owners)

async function serveSeveral(of: number): Promise<void> {
  await beginDivision({ host: '127.0.0.1', port: options.redisPort }, of)
  const ports: number[] = []
  const processes: KeptProcess<ToOwner, FromOwner>[] = []
  // Who asks for any port gets the one that the others got.
  for (let index = 1; index <= of; index++) {
    await new Promise<void>((resolve) => {
      processes.push(
        new KeptProcess<ToOwner, FromOwner>({
          name: `owner-${index}`,
          program: {
            exec: fileURLToPath(new URL('owner.js', import.meta.url)),
            args: [],
          },
          begin: () => ({ kind: 'begin', options, place: { index, of }, port: 0 }),
          end: { kind: 'end' },
          heard: ({ port }) => {
            ports.push(port)
            resolve()
          },
          logger: silentLogger,
        }),
      )
    })
  }
  serveBencher(ports[0] ?? 0, async () => {
    await Promise.all(processes.map(({ channel }) => channel?.ask({ kind: 'settle' })))
  })
}

import { expect, it } from 'vitest'
import { OutboundGuard } from '#outbound'
import { connectNats } from './index.ts'
import { natsPrograms, startNats } from './testing/nats-server.ts'
import { slowWay } from './testing/slow-way.ts'

for (const program of natsPrograms)
  it.skipIf(program.missing !== undefined)(
    `a server that is slow to answer is waited for: ${program.name}`,
    async () => {
      await using nats = await startNats(program)
      await using way = await slowWay(nats.port, 1800)
      const server = { host: '127.0.0.1', port: way.port, tls: false }
      const guard = new OutboundGuard({ use: 'broker', allow: [] })
      const connection = await connectNats(server, {}, guard, new AbortController().signal)
      expect(await connection.rtt()).toBeGreaterThanOrEqual(3600)
      await connection.close()
    },
  )

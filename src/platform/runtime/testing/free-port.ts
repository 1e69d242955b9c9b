import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port of 127.0.0.1 that nobody listens on. It is below those that the system gives away (32768 and above on Linux): whoever connects
 * to anything, or listens on any port, cannot take it before the test does, nor while what listened there is started again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    // Taken: another one.
    if (!(await once(server, 'listening').catch(() => undefined))) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../platform/runtime/testing/free-port.ts'
import { listenAtKept } from './kept-port.ts'

describe('the port at which a hub is found', () => {
  let folder: string
  let elsewhere: string[]
  const open = new Set<Server>()
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kept-port-'))
    elsewhere = []
  })
  afterEach(async () => {
    for (const server of open) await closed(server)
    await rm(folder, { recursive: true, force: true })
  })
  const closed = async (server: Server) => {
    open.delete(server)
    server.close()
    if (server.listening) await once(server, 'close')
  }
  const at = async (port: number) => {
    const server = createServer().listen(port, '127.0.0.1')
    await once(server, 'listening')
    open.add(server)
    return { server, address: { port: (server.address() as AddressInfo).port } }
  }
  const start = (wanted: number, knownTo = 'agents') =>
    listenAtKept(join(folder, 'port'), wanted, {
      listen: at,
      portOf: (it) => it.address.port,
      onElsewhere: (_, since) => void elsewhere.push(since),
      ...(knownTo !== '' && { knownTo }),
    })

  it('is another one where that is taken when the hub begins, and stays that one', async () => {
    const other = await at(0)
    const first = await start(other.address.port)
    expect(elsewhere).toEqual(['now'])
    await closed(other.server)
    await closed(first.server)
    const second = await start(other.address.port)
    expect([second.address.port, elsewhere]).toEqual([first.address.port, ['now', 'before']])
  })

  it('is waited for where another program has it later', async () => {
    const wanted = await freePort()
    await closed((await start(wanted)).server)
    const other = await at(wanted)
    await expect(start(wanted)).rejects.toMatchObject({ code: 'port_taken', retryable: true })
    await closed(other.server)
    expect((await start(wanted)).address.port).toBe(wanted)
    expect(elsewhere).toEqual([])
  })

  it('is another one, and stays that one, where nobody was told of it, and the one that is set where that is taken as well', async () => {
    const wanted = await freePort()
    await closed((await start(wanted, '')).server)
    const other = await at(wanted)
    const second = await start(wanted, '')
    expect(elsewhere).toEqual(['now'])
    await closed(second.server)
    await closed(other.server)
    const third = await start(wanted, '')
    expect([third.address.port, elsewhere]).toEqual([second.address.port, ['now', 'before']])
    expect((await start(wanted, '')).address.port).toBe(wanted)
  })

  it('is served also where it cannot be kept', async () => {
    await rm(folder, { recursive: true })
    const wanted = await freePort()
    expect((await start(wanted)).address.port).toBe(wanted)
  })

  it('is the one that is set where that changed, or the file is harmed', async () => {
    const [one, two] = [await freePort(), await freePort()]
    await closed((await start(one)).server)
    const second = await start(two)
    expect(second.address.port).toBe(two)
    await closed(second.server)
    for (const harmed of ['{"wan', 'null', `{"wanted":${one},"port":99999999}`, `{"wanted":${one},"port":-1}`]) {
      await writeFile(join(folder, 'port'), harmed)
      const again = await start(one)
      expect(again.address.port, harmed).toBe(one)
      await closed(again.server)
    }
  })
})

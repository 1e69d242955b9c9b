import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Metrics, silentLogger } from '#runtime'
import { readJoinConfig } from './config.ts'
import { probesPart } from './probes.ts'

const signal = new AbortController().signal
const stranger = createServer((_, response) => response.end('somebody else'))
let taken = 0
beforeEach(async () => {
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
  taken = (stranger.address() as AddressInfo).port
})
afterEach(() => new Promise((resolve) => stranger.close(resolve)))

describe('the probes of an agent', () => {
  const beside = (orFree: boolean) => {
    let port = 0
    const part = probesPart({
      ...{ address: { host: '127.0.0.1', port: taken, orFree }, metrics: new Metrics(), logger: silentLogger },
      ...{ status: () => undefined, version: '1' },
      onListening: (one) => {
        port = one
      },
    })
    return { part, port: () => port }
  }

  it('are on a free port where another program has theirs and nobody asked for it', async () => {
    const { part, port } = beside(true)
    await part.start(signal)
    expect(port()).not.toBe(taken)
    expect(await (await fetch(`http://127.0.0.1:${port()}/healthz`)).json()).toMatchObject({ status: 'ok' })
    await part.stop()
  })

  it('say which port is taken, where it was asked for', async () => {
    await expect(Promise.resolve(beside(false).part.start(signal))).rejects.toThrow(
      `port ${taken} is taken by another program; choose another with HEALTH_ADDRESS`,
    )
  })

  it.each([
    ['a machine', {}, { host: '127.0.0.1', port: 8081, orFree: true }],
    ['a pod, which is probed from outside', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, { host: '0.0.0.0', port: 8081 }],
    ['wherever it is told to', { HEALTH_ADDRESS: ':9000' }, { host: '0.0.0.0', port: 9000 }],
  ])('of one that joins are open to no network but where it must: on %s', (_, env, address) => {
    const { config } = readJoinConfig(env, { CLUSTER_NAME: 'east' })
    expect(config.healthAddress).toEqual(address)
  })
})

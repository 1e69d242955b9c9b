import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clusterpulse, eventually, type Running } from '../process.ts'

const missing = spawnSync('openssl', ['version']).status === 0 ? undefined : 'no openssl'
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing
const MEMBER = '/apis/cluster.open-cluster-management.io/v1/managedclusters'

/** A connection as a person makes it who has the certificate and its key. */
interface Connection {
  /** what came so far */
  said(): string
  /** ms until it ended; undefined: it is open */
  endedAfterMs(since: number): number | undefined
}

describe.skipIf(why !== undefined)(`a revoked certificate${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let folder: string
  let members: Running
  let hub: Running
  let agent: Running
  const clients: ChildProcess[] = []
  const at = (name: string) => join(folder, name)
  let agents: string
  let api: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'revoked-'))
    const size = ['--clusters', '1', '--nodes', '2', '--pods', '4']
    members = clusterpulse(['simulate', ...size, '--kubeconfig-out', at('members')])
    await members.says(/kubeconfig in/)
    const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
    hub = clusterpulse(['up', '--kubeconfig', at('members'), '--data-dir', at('hub'), ...ports])
    await hub.says(/on (http:\S+)/)
    const { stdout } = await run('connect', 'edge')
    const token = /npx clusterpulse join (\S+)/.exec(stdout)?.[1] ?? ''
    agent = clusterpulse(['join', token, '--kubeconfig', at('members'), '--buffer-dir', at('edge')], {
      env: { HEALTH_ADDRESS: '127.0.0.1:0' },
    })
    await eventually(
      async () => agent.stderr(),
      (said) => said.includes('waiting: '),
    )
    await run('accept', 'edge')
    await eventually(
      async () => agent.stderr(),
      (said) => said.includes('edge is a member of the hub'),
    )
    const identity = JSON.parse(await readFile(at('edge/identity/member.json'), 'utf8')) as {
      readonly certificate: string
      readonly key: string
      readonly hub: { readonly addresses: readonly string[] }
    }
    await writeFile(at('tls.crt'), identity.certificate)
    await writeFile(at('tls.key'), identity.key, { mode: 0o600 })
    agents = identity.hub.addresses[0] ?? ''
    api = /server: https:\/\/(\S+)/.exec(await readFile(at('hub/kubeconfig'), 'utf8'))?.[1] ?? ''
  })
  afterAll(async () => {
    for (const client of clients) client.kill('SIGKILL')
    for (const one of [agent, hub, members]) await one?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  const run = async (...args: string[]) => {
    const command = clusterpulse([...args, '--kubeconfig', at('hub/kubeconfig')])
    expect(await command.ended(), command.stderr()).toBe(0)
    return { stdout: command.stdout() }
  }
  /** `openssl s_client` with the member's certificate; it says the lines and waits. */
  const client = (address: string, args: readonly string[], lines: readonly string[] = []): Connection => {
    const pair = ['-cert', at('tls.crt'), '-key', at('tls.key')]
    const child = spawn('openssl', ['s_client', '-connect', address, ...pair, '-quiet', ...args])
    clients.push(child)
    let said = ''
    let endedAt: number | undefined
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString('latin1')
    })
    child.on('exit', () => {
      endedAt = Date.now()
    })
    child.stdin.on('error', () => undefined) // it ended before it was told anything
    for (const line of lines) child.stdin.write(`${line}\r\n`)
    return { said: () => said, endedAfterMs: (since) => endedAt && endedAt - since }
  }
  const asking = (path: string) => client(api, [], [`GET ${path} HTTP/1.1`, 'Host: hub', ''])
  const answered = async (path: string) => {
    const connection = asking(path)
    return eventually(
      async () => connection.said(),
      (said) => said.startsWith('HTTP/1.1 '),
    )
  }
  const settled = (one: Connection) =>
    expect.poll(() => one.said() !== '' || one.endedAfterMs(0) !== undefined).toBe(true)

  it('is refused by openssl s_client at both listeners', async () => {
    // Before, both know it.
    const stream = client(agents, ['-alpn', 'h2'])
    await settled(stream)
    expect(stream.endedAfterMs(0)).toBeUndefined()
    expect(await answered(`${MEMBER}/edge`)).toMatch(/^HTTP\/1\.1 200 /)
    const watch = asking(`${MEMBER}?watch=true&fieldSelector=metadata.name%3Dedge`)
    await expect.poll(() => watch.said()).toMatch(/^HTTP\/1\.1 200 [\s\S]*"name":"edge"/)

    await run('revoke', 'edge')
    // The command ends when it is written: what ended meanwhile counts as at once.
    const since = Date.now()
    // The limits are those of a machine that has much else to do.
    for (const open of [stream, watch]) await expect.poll(() => open.endedAfterMs(since)).toBeDefined()
    console.info(
      `ended after the revocation: stream ${stream.endedAfterMs(since)} ms, watch ${watch.endedAfterMs(since)} ms`,
    )

    const again = client(agents, ['-alpn', 'h2'])
    await expect.poll(() => again.endedAfterMs(since)).toBeDefined()
    expect(again.said()).toBe('')
    expect(await answered(`${MEMBER}/edge`)).toMatch(/^HTTP\/1\.1 401 /)
  })
})

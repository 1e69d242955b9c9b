import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { OutboundGuard } from '#outbound'
import { openSink, type SinkContext } from '../index.ts'
import { at, contextOf, deliveryOf, rowsTo, writingOf } from '../testing/contract.ts'
import { noSshd, type SshServer, startSshServer } from '../testing/ssh-server.ts'

const signal = new AbortController().signal
const west = writingOf('west')

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'git-ssh-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

async function aWorld() {
  const server = await startSshServer()
  const repository = join(await aFolder(), 'inventory.git')
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', repository])
  const git = (...args: string[]) => execFileSync('git', ['-C', repository, ...args], { encoding: 'utf8' }).trim()
  const directory = await aFolder()
  const open = async (
    credentials: Readonly<Record<string, string>>,
    context: Partial<SinkContext> = {},
    host = '127.0.0.1',
    more = {},
  ) => {
    const sink = await openSink(
      'snapshot',
      {
        namespace: 'team-a',
        name: 'git',
        cluster: 'west',
        credentials: Object.fromEntries(Object.entries(credentials).map(([name, text]) => [name, Buffer.from(text)])),
        spec: { type: 'git', endpoint: `ssh://${server.user}@${host}:${server.port}${repository}`, ...more },
      },
      contextOf({ directory, ...context }),
    )
    onTestFinished(() => sink[Symbol.asyncDispose]())
    return sink
  }
  return { server, git, open, directory }
}
const whole = (server: SshServer) => ({ 'ssh-privatekey': server.key, known_hosts: server.knownHosts() })

describe.skipIf(noSshd() !== undefined)('a branch of git over ssh', () => {
  it('is written to with the key of the Secret, which is in no file afterwards', async () => {
    const { server, git, open, directory } = await aWorld()
    const sink = await open(whole(server))
    expect(await sink.probe(signal)).toMatchObject({ verified: true })
    await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    await sink.deliver(deliveryOf(west, at(2), rowsTo(4)), signal)
    expect(git('rev-list', '--count', 'main')).toBe('2')
    expect((await readdir(join(directory, 'git'))).filter((name) => name.endsWith('.access'))).toEqual([])
  })

  it('is not written to where the key of the host is another one, or not known', async () => {
    const { server, git, open } = await aWorld()
    const other = await startSshServer()
    const changed = other.knownHosts().replace(`:${other.port} `, `:${server.port} `)
    for (const [known_hosts, words] of [
      [changed, 'the host key is another one than known_hosts'],
      [other.knownHosts(), 'known_hosts of the Secret has no key of this host'],
    ] as const) {
      const sink = await open({ ...whole(server), known_hosts })
      await expect(sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)).rejects.toMatchObject({
        errorClass: 'terminal',
        message: expect.stringContaining(words),
      })
    }
    expect(git('branch', '--list')).toBe('')
    const careless = await open({ 'ssh-privatekey': server.key }, {}, '127.0.0.1', {
      tls: { insecureSkipVerify: true },
    })
    await careless.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(git('rev-list', '--count', 'main')).toBe('1')
  })

  it('says which credential is missing or not taken', async () => {
    const { server, open } = await aWorld()
    const wrong = await server.newKey('wrong')
    const locked = await server.newKey('locked', 'a passphrase')
    for (const [credentials, words] of [
      [{ ...whole(server), 'ssh-privatekey': wrong }, 'does not take the ssh key'],
      [{ ...whole(server), 'ssh-privatekey': 'no key at all' }, 'the ssh key of the Secret cannot be read'],
      [{ ...whole(server), 'ssh-privatekey': locked }, 'has a passphrase'],
      [{ 'ssh-privatekey': server.key }, 'the Secret has no known_hosts'],
      [{ token: 'abcdefgh', known_hosts: server.knownHosts() }, 'the Secret holds a token'],
      [{}, 'the Secret has no ssh key'],
    ] as const) {
      const sink = await open({ ...credentials })
      await expect(sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)).rejects.toMatchObject({
        errorClass: 'terminal',
        message: expect.stringContaining(words),
      })
    }
  })

  it('is reached at any address of its name that was judged, and known by its name', async () => {
    const { server, git, open } = await aWorld()
    const guard = (...addresses: readonly string[]) =>
      new OutboundGuard({
        use: 'sink',
        allowLoopback: true,
        allowPrivate: false,
        names: (_, callback) =>
          callback(
            null,
            addresses.map((address) => ({ address, family: 4 })),
          ),
      })
    const credentials = { ...whole(server), known_hosts: server.knownHosts('git.test') }
    const sink = await open(credentials, { guard: guard('127.0.0.2', '127.0.0.1') }, 'git.test')
    await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(git('rev-list', '--count', 'main')).toBe('1')
    const refused = await open(credentials, { guard: guard('127.0.0.1', '169.254.169.254') }, 'git.test')
    await expect(refused.deliver(deliveryOf(west, at(2), rowsTo(2)), signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('metadata'),
    })
  })
})

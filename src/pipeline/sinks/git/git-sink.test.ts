import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import type { Row } from '#extract'
import type { KollectSnapshotSinkSpec } from '#kinds'
import { type Lookup, OutboundGuard } from '#outbound'
import { openSink, type SinkContext, type Writing } from '../index.ts'
import { aRow, at, contextOf, deliveryOf, rowsTo, sinkContract, writingOf } from '../testing/contract.ts'
import { type GitServer, startGitServer } from '../testing/git-server.ts'

const PASSWORD = 'a-token-nobody-may-see'
const signal = new AbortController().signal
const bytes = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(values).map(([name, text]) => [name, Buffer.from(text)]))
const west = writingOf('west')

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'git-sink-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

let tls: { readonly key: string; readonly cert: string; readonly ca: string }
beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'git-tls-'))
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1,DNS:git.test']
  openssl(
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=git.test',
    '-keyout',
    'key',
    '-out',
    'cert',
    ...names,
  )
  const text = (name: string) => execFileSync('cat', [join(folder, name)], { encoding: 'utf8' })
  tls = { key: text('key'), cert: text('cert'), ca: text('cert') }
  await rm(folder, { recursive: true })
})

const server = (more: { readonly isPublic?: boolean; readonly tls?: typeof tls } = {}) =>
  startGitServer({ user: 'x-access-token', password: PASSWORD, ...more })

interface Opening {
  readonly spec?: Partial<KollectSnapshotSinkSpec>
  readonly credentials?: Readonly<Record<string, string>>
  readonly caBundle?: string
  readonly context?: Partial<SinkContext>
}

async function opened(
  endpoint: string,
  { spec = {}, credentials = { token: PASSWORD }, caBundle, context = {} }: Opening = {},
) {
  const sink = await openSink(
    'snapshot',
    {
      namespace: 'team-a',
      name: 'git',
      cluster: 'west',
      credentials: bytes(credentials),
      ...(caBundle !== undefined && { caBundle }),
      spec: { type: 'git', endpoint, pathTemplate: '{cluster}/{namespace}/{name}{extension}', ...spec },
    },
    contextOf({ directory: context.directory ?? (await aFolder()), ...context }),
  )
  onTestFinished(() => sink[Symbol.asyncDispose]())
  return sink
}

const rowsIn = (git: GitServer, { cluster, namespace, inventory }: Writing): Row[] => {
  if (git.git('branch', '--list', 'main') === '') return []
  const start = `${cluster}/${namespace}/${inventory}.`
  return git
    .files()
    .filter((path) => path.startsWith(start) && path.endsWith('.yaml'))
    .flatMap((path) => parse(git.show(path) ?? '') as Row[])
}
const commits = (git: GitServer): number => Number(git.git('rev-list', '--count', 'main'))

sinkContract('a branch of git over https', {
  sequences: 2,
  maxPartBytes: 1_572_864,
  saysWhoWrote: true,
  harness: async () => {
    const git = await server({ tls })
    return {
      open: () => opened(git.url(), { caBundle: tls.ca }),
      openAs: (writer) => opened(git.url(), { caBundle: tls.ca, context: { writer } }),
      read: async (writing) => rowsIn(git, writing),
      writes: async () => commits(git),
    }
  },
})

describe('clusters that write to one branch at once', () => {
  const make = 'make as many commits, each on top of another, and none is forced'
  it(`five of them ${make}`, () => writesAtOnce(5))
  // Each waits for all that come before it.
  it(`ten of them ${make}`, { tags: ['long'] }, () => writesAtOnce(10))

  async function writesAtOnce(count: number): Promise<void> {
    const git = await server()
    git.git('config', 'receive.denyNonFastForwards', 'true')
    git.git('config', 'core.logAllRefUpdates', 'true')
    const clusters = Array.from({ length: count }, (_, i) => `cluster-${i}`)
    // Each by an address of its own: no two of them wait for each other in this process.
    const sinks = await Promise.all(clusters.map((cluster) => opened(git.url(cluster))))
    const receipts = await Promise.all(
      sinks.map((sink, i) => sink.deliver(deliveryOf(writingOf(clusters[i]!), at(1), rowsTo(20)), signal)),
    )
    expect(receipts.map(({ written }) => written)).toEqual(clusters.map(() => 2))
    expect(commits(git)).toBe(count)
    expect(git.git('rev-list', '--count', '--max-parents=0', 'main')).toBe('1')
    expect(git.git('rev-list', '--count', '--min-parents=2', 'main')).toBe('0')
    for (const cluster of clusters) expect(rowsIn(git, writingOf(cluster))).toHaveLength(20)
    // Every position that the branch ever had is in what it has now: nothing was forced.
    for (const id of git.git('reflog', 'show', '--format=%H', 'main').split('\n'))
      git.git('merge-base', '--is-ancestor', id, 'main')
  }
})

describe('a commit', () => {
  it('says what it brings, with one block of trailers that git recognises', async () => {
    const git = await server()
    const sink = await opened(git.url(), {
      spec: {
        git: {
          commitMessage: 'inventory: {name} of {cluster} ({itemCount}) {unknown}',
          commitBody: 'written by {sink} to {path}',
          commitTrailers: ['Reviewed-by: inventory', 'Checksum: {checksumShort}'],
          author: { name: 'Fleet', email: 'fleet@example.com' },
        },
      },
    })
    const delivery = deliveryOf(west, at(1), rowsTo(3))
    await sink.deliver(delivery, signal)
    expect(git.git('log', '-1', '--format=%s%n%an <%ae> %cn', 'main')).toBe(
      'inventory: workloads of west (3) {unknown}\nFleet <fleet@example.com> Fleet',
    )
    expect(git.git('log', '-1', '--format=%(trailers:only)', 'main')).toBe(
      `Reviewed-by: inventory\nChecksum: ${delivery.checksum.slice(0, 12)}`,
    )
    expect(git.git('log', '-1', '--format=%b', 'main')).toContain('written by team-a/git to west/team-a/workloads.yaml')
    await sink.deliver(deliveryOf(west, at(2), rowsTo(3)), signal)
    expect(commits(git)).toBe(1)
  })

  it('begins an empty repository, and a branch that is not there begins at the default one', async () => {
    const git = await server()
    await (await opened(git.url())).deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    expect(git.git('rev-list', '--count', 'main')).toBe('1')
    const other = await opened(git.url(), { spec: { git: { branch: 'inventory/west' } } })
    await other.deliver(deliveryOf(west, at(2), rowsTo(5)), signal)
    expect(git.git('rev-list', '--count', 'inventory/west')).toBe('2')
    expect(git.git('merge-base', 'main', 'inventory/west')).toBe(git.git('rev-parse', 'main'))
    const strict = await opened(`${git.url()}#branch=none`, { spec: { provisioning: { mode: 'existing' } } })
    await expect(strict.deliver(deliveryOf(west, at(3), rowsTo(5)), signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('the branch none is not there'),
    })
  })

  it('keeps what others have there, and never turns their files into folders', async () => {
    const git = await server()
    const sink = await opened(git.url())
    await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    const clone = await aFolder()
    const person = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=p', '-c', 'user.email=p@p', ...args], { cwd: clone, stdio: 'pipe' })
    person('clone', '--quiet', git.repository, '.')
    await writeFile(join(clone, 'README.md'), 'mine')
    await writeFile(join(clone, 'east'), 'a file')
    person('add', '.')
    person('commit', '--quiet', '-m', 'mine')
    person('push', '--quiet', 'origin', 'main')
    await sink.deliver(deliveryOf(west, at(2), rowsTo(3)), signal)
    expect(git.show('README.md')).toBe('mine')
    expect(rowsIn(git, west)).toHaveLength(3)
    await expect(sink.deliver(deliveryOf(writingOf('east'), at(1), rowsTo(1)), signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringMatching(/^east is a file in the branch/),
    })
    await sink.remove(west, at(3), signal)
    expect(git.files()).toEqual(['README.md', 'east'])
    expect(git.git('log', '-1', '--format=%s', 'main')).toBe('chore(west/team-a/workloads): remove inventory')
  })

  it('has a file for each row where that is asked for, and takes only what is gone', async () => {
    const git = await server()
    const sink = await opened(git.url(), { spec: { layout: { mode: 'perResource', content: 'attributes' } } })
    await sink.deliver(deliveryOf(west, at(1), rowsTo(100)), signal)
    expect(git.files()).toHaveLength(101)
    const changed = rowsTo(99).map((row) => (row.uid === 'uid-7' ? aRow(7, { image: 'new' }) : row))
    const receipt = await sink.deliver(deliveryOf(west, at(2), changed), signal)
    expect(receipt).toMatchObject({ written: 2, removed: 1 })
    expect(git.git('diff', '--name-status', 'main~1', 'main').split('\n').sort()).toEqual([
      'D\twest/shop-1/deployment/web-99.yaml',
      'M\twest/shop-0/deployment/web-7.yaml',
      'M\twest/team-a/workloads.manifest.json',
    ])
    expect(git.show('west/shop-0/deployment/web-7.yaml')).toBe('image: new\n')
  })
})

it('moves an inventory to where another path template says, in the commit that brings it', async () => {
  const git = await server()
  const before = await opened(git.url())
  const { listedAt = '' } = await before.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
  await before.deliver(deliveryOf(writingOf('east'), at(1), rowsTo(3)), signal)
  const sink = await opened(git.url(), { spec: { pathTemplate: 'moved/{cluster}-{name}{extension}' } })
  const moved = deliveryOf(west, at(2), rowsTo(3), { formerList: listedAt })
  expect(await sink.deliver(moved, signal)).toMatchObject({ listedAt: 'moved/west-workloads.manifest.json' })
  expect(commits(git)).toBe(3)
  expect(git.files()).toEqual(
    expect.arrayContaining(['moved/west-workloads.yaml', 'moved/west-workloads.manifest.json']),
  )
  expect(git.files().filter((path) => path.startsWith('west'))).toEqual([])
  expect(rowsIn(git, writingOf('east'))).toHaveLength(3)
  // It ended before anybody wrote down where it is, and is to be elsewhere by now.
  const third = await opened(git.url(), { spec: { pathTemplate: 'third/{cluster}-{name}{extension}' } })
  await third.deliver(deliveryOf(west, at(3), rowsTo(3), { formerList: listedAt }), signal)
  expect(git.files().filter((path) => path.includes('west'))).toEqual([
    'third/west-workloads.manifest.json',
    'third/west-workloads.yaml',
  ])
  await sink.deliver(deliveryOf(west, at(4), rowsTo(3), { formerList: 'third/west-workloads.manifest.json' }), signal)
  expect(commits(git)).toBe(5)
  // Told once more, as where nobody could write down that it was done.
  await sink.deliver(deliveryOf(west, at(5), rowsTo(3), { isLook: true, formerList: listedAt }), signal)
  expect(commits(git)).toBe(5)
})

it('keeps what is to be kept where another path template leads elsewhere', async () => {
  const git = await server()
  const layout = { mode: 'document' as const }
  const before = await opened(git.url(), { spec: { pathTemplate: 'old/{name}-{generation}{extension}', layout } })
  const { listedAt = '' } = await before.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
  const sink = await opened(git.url(), { spec: { pathTemplate: 'new/{name}{extension}', layout } })
  await sink.deliver(deliveryOf(west, at(2), rowsTo(4), { formerList: listedAt }), signal)
  expect(git.files()).toEqual(expect.arrayContaining(['old/workloads-1.yaml', 'new/workloads.yaml']))
})

describe('bad luck', () => {
  it('a branch that is deleted, and a history that is rewritten, are written on again', async () => {
    const git = await server()
    const sink = await opened(git.url())
    for (const [sequence, count] of [
      [1, 3],
      [2, 4],
      [3, 5],
    ] as const)
      await sink.deliver(deliveryOf(west, at(sequence), rowsTo(count)), signal)
    git.git('update-ref', 'refs/heads/main', git.git('rev-parse', 'main~2'))
    await sink.deliver(deliveryOf(west, at(4), rowsTo(6)), signal)
    expect(commits(git)).toBe(2)
    expect(rowsIn(git, west)).toHaveLength(6)
    git.git('update-ref', '-d', 'refs/heads/main')
    await sink.deliver(deliveryOf(west, at(5), rowsTo(7)), signal)
    expect(commits(git)).toBe(1)
    expect(rowsIn(git, west)).toHaveLength(7)
  })

  it('a push that is overtaken ten times gives up, to be tried again, and has forced nothing', async () => {
    const git = await server()
    const sink = await opened(git.url())
    await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    let overtakes = 0
    git.intercept = (request) => {
      if (request.method !== 'POST' || !request.url?.includes('git-receive-pack')) return false
      overtakes++
      const tree = git.git('rev-parse', 'main^{tree}')
      const commit = git.git(
        '-c',
        'user.name=p',
        '-c',
        'user.email=p@p',
        'commit-tree',
        tree,
        '-p',
        'main',
        '-m',
        `${overtakes}`,
      )
      git.git('update-ref', 'refs/heads/main', commit)
      return false
    }
    await expect(sink.deliver(deliveryOf(west, at(2), rowsTo(2)), signal)).rejects.toMatchObject({
      errorClass: 'transient',
      message: expect.stringContaining('others pushed to main first, 10 times'),
    })
    expect(overtakes).toBe(10)
    expect(commits(git)).toBe(11)
    git.intercept = () => false
    await sink.deliver(deliveryOf(west, at(3), rowsTo(2)), signal)
    expect(rowsIn(git, west)).toHaveLength(2)
  })

  it('a hook that refuses is told in its own words, and is no reason to push again', async () => {
    const git = await server()
    const hook = join(git.repository, 'hooks/pre-receive')
    await mkdir(join(git.repository, 'hooks'), { recursive: true })
    await writeFile(hook, '#!/bin/sh\necho "only people may push here" >&2\nexit 1\n', { mode: 0o755 })
    const sink = await opened(git.url())
    await expect(sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)).rejects.toMatchObject({
      errorClass: 'forbidden',
      message: expect.stringMatching(/refused the push by a hook.*only people may push here/),
    })
    expect(git.requests.filter(({ method, url }) => method === 'POST' && url.includes('receive-pack'))).toHaveLength(1)
  })

  for (const [status, errorClass, words, tags] of [
    [401, 'terminal', 'does not take the credentials', []],
    [403, 'forbidden', 'forbids it', []],
    [302, 'terminal', 'sends elsewhere', []],
    [503, 'transient', 'broke off', []],
    // What is made of these, failure.test.ts says as well.
    [404, 'terminal', 'no such repository', ['long']],
    [429, 'transient', 'fewer requests', ['long']],
  ] as const)
    it(`an answer ${status} half-way is ${errorClass}`, { tags: [...tags] }, async () => {
      const git = await server()
      const other = await server()
      const sink = await opened(git.url())
      await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
      git.intercept = (request, response) => {
        if (!request.url?.includes('receive-pack')) return false
        response.writeHead(status, { location: other.url() }).end()
        return true
      }
      await expect(sink.deliver(deliveryOf(west, at(2), rowsTo(2)), signal)).rejects.toMatchObject({
        errorClass,
        message: expect.stringContaining(words),
      })
      expect(other.requests).toEqual([])
      expect(await sink.probe(signal)).toMatchObject({ verified: false, message: expect.stringContaining(words) })
      git.intercept = () => false
      await sink.deliver(deliveryOf(west, at(3), rowsTo(2)), signal)
      expect(rowsIn(git, west)).toHaveLength(2)
    })

  it('a server that nobody hears from is left when the call is ended, and no git is left behind', async () => {
    const git = await server()
    const sink = await opened(git.url())
    let isHeld = () => {}
    const held = new Promise<void>((resolve) => {
      isHeld = resolve
    })
    git.intercept = () => {
      isHeld()
      return new Promise(() => {})
    }
    const stop = new AbortController()
    const going = sink.deliver(deliveryOf(west, at(1), rowsTo(1)), stop.signal)
    await held
    stop.abort(new Error('enough'))
    await expect(going).rejects.toThrow('enough')
    const left = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes(git.url()))
    expect(left).toEqual([])
  })

  it('a cache that is broken is made anew', async () => {
    const git = await server()
    const directory = await aFolder()
    const sink = await opened(git.url(), { context: { directory } })
    await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    const [cache = ''] = (await readdir(join(directory, 'git'))).filter((name) => !name.endsWith('.access'))
    // As it is tidied from time to time.
    execFileSync('git', ['--git-dir', join(directory, 'git', cache), 'gc', '--quiet', '--prune=now'])
    await sink.deliver(deliveryOf(west, at(2), rowsTo(2)), signal)
    expect(rowsIn(git, west)).toHaveLength(2)
    await rm(join(directory, 'git', cache, 'objects'), { recursive: true })
    await writeFile(join(directory, 'git', cache, 'shallow.lock'), '')
    await sink.deliver(deliveryOf(west, at(3), rowsTo(4)), signal)
    expect(rowsIn(git, west)).toHaveLength(4)
  })
})

describe('credentials', () => {
  const encoded = Buffer.from(`x-access-token:${PASSWORD}`).toString('base64')
  const isSecret = (text: string) => text.includes(PASSWORD) || text.includes(encoded)

  it.each([false, true])(
    'are in no argument and in no file (sent before they are asked for: %s)',
    async (forceBasicAuth) => {
      const git = await server()
      const directory = await aFolder()
      const sink = await opened(git.url(), { context: { directory }, spec: { git: { forceBasicAuth } } })
      let seen = ''
      git.intercept = () => {
        seen += execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
        seen += execFileSync('sh', ['-c', `cat $(find . -type f)`], {
          cwd: directory,
          encoding: 'latin1',
          stdio: ['ignore', 'pipe', 'ignore'],
        })
        return false
      }
      await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
      expect(seen).toContain(git.url())
      expect(isSecret(seen)).toBe(false)
      expect(git.requests.some(({ authorization }) => authorization === undefined)).toBe(!forceBasicAuth)
      expect((await stat(join(directory, 'git'))).mode & 0o077).toBe(0)
    },
  )

  it.each([
    [{ token: `${PASSWORD}-wrong` }, 'does not take the credentials'],
    [{}, 'does not take the credentials'],
    [{ 'ssh-privatekey': 'x' }, 'the Secret holds an ssh key'],
    [{ token: 'two\nlines' }, 'line break'],
  ] as const)('%j are refused in a sentence without them', async (credentials, words) => {
    const git = await server()
    const sink = await opened(git.url(), { credentials: { ...credentials } })
    const failure = await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal).then(
      () => undefined,
      (error: Error) => error,
    )
    expect(failure).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining(words) })
    expect(isSecret(String(failure?.message))).toBe(false)
    expect(await sink.probe(signal)).toMatchObject({ verified: false, message: failure?.message })
  })

  it('that may read and not write are found by the probe', async () => {
    const git = await server({ isPublic: true })
    const reader = await opened(git.url(), { credentials: {} })
    expect(await reader.probe(signal)).toMatchObject({ verified: false })
    const writer = await opened(git.url())
    expect(await writer.probe(signal)).toEqual({
      verified: true,
      message: 'the repository is empty, and may be written to',
      warnings: ['credentials are sent unencrypted: write https'],
    })
    expect(git.git('branch', '--list')).toBe('')
  })

  it('in the address are dropped', async () => {
    const git = await server()
    const sink = await opened(git.url().replace('://', '://somebody:else@'))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(rowsIn(git, west)).toHaveLength(1)
  })
})

describe('where it connects to', () => {
  const named =
    (...addresses: readonly string[]): Lookup =>
    (_, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
  const guard = (names: Lookup, allowLoopback = true) =>
    new OutboundGuard({ use: 'sink', allowLoopback, allowPrivate: false, names })

  it('is the address that was judged, and the certificate is that of the name', async () => {
    const git = await server({ tls })
    const url = `https://git.test:${git.port}/git/inventory.git`
    const sink = await opened(url, { caBundle: tls.ca, context: { guard: guard(named('127.0.0.1')) } })
    await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(rowsIn(git, west)).toHaveLength(1)
  })

  it.each([
    [['169.254.169.254'], true],
    [['127.0.0.1', '169.254.169.254'], true],
    [['10.0.0.1'], true],
    [['127.0.0.1'], false],
  ] as const)('is none of %j where loopback is open: %s', async (addresses, isOpen) => {
    const git = await server()
    const sink = await opened(`http://git.test:${git.port}/git/inventory.git`, {
      context: { guard: guard(named(...addresses), isOpen) },
    })
    await expect(sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('nothing is sent there'),
    })
    expect(git.requests).toEqual([])
  })

  it('is no server whose certificate is not trusted, unless nobody is to look', async () => {
    const git = await server({ tls })
    const careful = await opened(git.url())
    await expect(careful.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('certificate of the server is not trusted'),
    })
    const careless = await opened(git.url(), { spec: { tls: { insecureSkipVerify: true } } })
    await careless.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect((await careless.probe(signal)).warnings).toContainEqual(expect.stringContaining('nobody verifies'))
  })

  it('is a folder of the machine only where the process opens the machine', async () => {
    const git = await server()
    const url = `file://${git.repository}`
    await (await opened(url, { credentials: {} })).deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(rowsIn(git, west)).toHaveLength(1)
    const closed = await opened(url, { credentials: {}, context: { guard: guard(named(), false) } })
    await expect(closed.deliver(deliveryOf(west, at(2), rowsTo(2)), signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('SINK_ALLOW_LOOPBACK'),
    })
  })

  it('is told by no proxy of the environment', async () => {
    const git = await server()
    process.env.http_proxy = 'http://127.0.0.1:1'
    onTestFinished(() => {
      delete process.env.http_proxy
    })
    await (await opened(git.url())).deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(rowsIn(git, west)).toHaveLength(1)
  })
})

describe('forced pushes', () => {
  it('are refused, unless the semantics are those of the original', async () => {
    const git = await server()
    const spec = { git: { pushPolicy: 'ForcePush' } } as const
    await expect(opened(git.url(), { spec })).rejects.toMatchObject({ errorClass: 'terminal' })
    const sink = await opened(git.url(), { spec, context: { semantics: 'original' } })
    await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect((await sink.probe(signal)).warnings).toContainEqual(expect.stringContaining('forced'))
  })
})

it('says so where the agent cannot use its own folder', async () => {
  const directory = join(await aFolder(), 'file')
  await writeFile(directory, '')
  const sink = await opened('https://127.0.0.1:1/a.git', { context: { directory } })
  const refused = await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal).catch((error) => error)
  expect(refused).toMatchObject({ errorClass: 'transient', message: expect.stringContaining('(ENOTDIR)') })
})

describe('a preview', () => {
  it('shows path and commit without a look at the remote', async () => {
    const sink = await opened('https://git.example.com/team/inventory.git')
    expect(sink.preview({ cluster: 'west', namespace: 'team-a', inventory: 'api' })).toMatchObject({
      objectPath: 'west/team-a/api.yaml',
      serializationFormat: 'yaml',
      provisioningMode: 'ensure',
      git: { sampleCommitSubject: 'chore(west/team-a/api): export 42 items @ 000000000000', sampleCommitBody: '' },
      layout: { mode: 'document', samplePaths: ['west/team-a/api.yaml'] },
    })
  })
})

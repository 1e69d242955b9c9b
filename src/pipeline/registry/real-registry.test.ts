import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../platform/runtime/testing/free-port.ts'
import { eventually } from '../state/test/redis-server.ts'
import { probe, targetAt } from './testing/registry-server.ts'

/** Debian's package `docker-registry`; elsewhere the program is called `registry`. */
const program = ['docker-registry', 'registry'].find(
  (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0,
)
const missing = program === undefined && process.env.CI_REQUIRE_ALL !== '1'

interface RealRegistry extends AsyncDisposable {
  readonly url: string
}

async function startRegistry(more = ''): Promise<RealRegistry> {
  const directory = await mkdtemp(join(tmpdir(), 'registry-'))
  const port = await freePort()
  const config = `version: 0.1
log: { level: error, accesslog: { disabled: true } }
storage: { filesystem: { rootdirectory: ${directory}/data } }
http: { addr: 127.0.0.1:${port}, secret: for-tests }
${more.replaceAll('DIRECTORY', directory)}`
  await writeFile(join(directory, 'config.yml'), config)
  await writeFile(join(directory, 'htpasswd'), HTPASSWD)
  const child = spawn(program ?? 'docker-registry', ['serve', join(directory, 'config.yml')], { stdio: 'ignore' })
  const url = `http://127.0.0.1:${port}`
  await eventually('the registry answers', async () => {
    if (child.exitCode !== null) throw new Error(`the registry ended with ${child.exitCode}`)
    return fetch(`${url}/v2/`).then(
      () => true,
      () => false,
    )
  })
  return { url, [Symbol.asyncDispose]: () => end(child, directory) }
}

async function end(child: ChildProcess, directory: string): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  await rm(directory, { recursive: true, force: true })
}

/** robot with the password s3cret-of-the-robot, as `htpasswd -B` writes it. */
const HTPASSWD = 'robot:$2b$04$HHkvshdTcSp5J52uZHXMQ.8ID2cCtm8NSEfMMj8zg9gCDNQ6Pgk92\n'

const digestOf = (bytes: string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** The smallest image there is: a configuration and no layer. */
async function push(url: string, repository: string): Promise<void> {
  const config = '{}'
  const begun = await fetch(`${url}/v2/${repository}/blobs/uploads/`, { method: 'POST' })
  const place = new URL(begun.headers.get('location') ?? '', url)
  place.searchParams.set('digest', digestOf(config))
  await fetch(place, { method: 'PUT', body: config, headers: { 'content-type': 'application/octet-stream' } })
  const mediaType = 'application/vnd.docker.distribution.manifest.v2+json'
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType,
    config: {
      mediaType: 'application/vnd.docker.container.image.v1+json',
      size: config.length,
      digest: digestOf(config),
    },
    layers: [],
  })
  const put = await fetch(`${url}/v2/${repository}/manifests/latest`, {
    method: 'PUT',
    body: manifest,
    headers: { 'content-type': mediaType },
  })
  expect(put.status).toBe(201)
}

describe.skipIf(missing)(`a real registry${missing ? ' (skipped: no docker-registry here)' : ''}`, () => {
  let open: RealRegistry
  beforeAll(async () => {
    open = await startRegistry()
    for (let index = 0; index < 25; index++) await push(open.url, `team-${index % 3}/app-${index}`)
  })
  afterAll(async () => open?.[Symbol.asyncDispose]())

  it('is available, with its version', async () =>
    expect(await probe(targetAt(open.url, { timeoutMs: 20_000 }))).toMatchObject({
      available: true,
      version: 'registry/2.0',
      features: { docker_v2_api: true },
      warnings: [],
    }))

  it.each([1, 4, 25, 100, undefined])('is counted over its pages of %s', async (catalogPageSize) => {
    const target = targetAt(open.url, { checkCatalog: true, catalogPageSize, timeoutMs: 20_000 })
    expect(await probe(target)).toMatchObject({ repositoryCount: 25, isCatalogTruncated: false, warnings: [] })
  })

  it('that wants Basic is signed in to, and refuses what is wrong', async () => {
    await using server = await startRegistry('auth: { htpasswd: { realm: here, path: DIRECTORY/htpasswd } }')
    const credentialsRef = { name: 'robot', namespace: 'clusterpulse' }
    const with_ = (password: string) =>
      targetAt(server.url, {
        credentials: { username: 'robot', password },
        credentialsRef,
        checkCatalog: true,
        timeoutMs: 20_000,
      })
    expect(await probe(targetAt(server.url))).toMatchObject({ available: true, features: { requires_auth: true } })
    expect(await probe(with_('s3cret-of-the-robot'))).toMatchObject({
      health: 'healthy',
      repositoryCount: 0,
      warnings: [],
    })
    expect(await probe(with_('wrong'))).toMatchObject({ health: 'degraded', warnings: [{ code: 'unauthorized' }, {}] })
  })
})

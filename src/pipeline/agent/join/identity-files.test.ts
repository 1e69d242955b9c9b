import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestAuthority } from '../../ingest/stream/test/certificates.ts'
import { newKey } from './certificate-request.ts'
import { type Asking, IdentityError, type MemberIdentity } from './identity.ts'
import { IdentityFiles } from './identity-files.ts'

let root = ''
let pair = { cert: '', key: '' }
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'identity-'))
  pair = await (await TestAuthority.make('test')).sign('west', 'client')
})
afterAll(() => rm(root, { recursive: true, force: true }))

let n = 0
const folder = () => join(root, String(n++), 'identity')
const hub = { addresses: ['hub:9443'], caFingerprint: 'ab'.repeat(32) }
const asking = (): Asking => ({
  ...{ hub, roots: '', cluster: 'west', agent: 'a1', key: newKey(), request: 'AAAA', token: 'secret' },
})
const member = (): MemberIdentity => ({
  ...{ hub, roots: '', cluster: 'west', agent: 'a1', key: pair.key, certificate: pair.cert, joinedBy: 'ab' },
})

describe('what an agent keeps of its membership', () => {
  it('is nothing at first, then the question, then the certificate with its key alone', async () => {
    const directory = folder()
    const files = new IdentityFiles(directory)
    expect(await files.member()).toBeUndefined()
    expect(await files.asking()).toBeUndefined()
    const asked = asking()
    await files.ask(asked)
    expect(await files.asking()).toEqual(asked)
    await files.join(member())
    expect(await files.member()).toEqual(member())
    expect(await files.asking()).toBeUndefined()
    expect(await readdir(directory)).toEqual(['member.json'])
  })

  it('can be read by nobody else', async () => {
    const directory = folder()
    const files = new IdentityFiles(directory)
    await files.ask(asking())
    await files.join(member())
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
    expect((await stat(join(directory, 'member.json'))).mode & 0o777).toBe(0o600)
  })

  it.each(['', '{', '{}', '{"key":"none"}', 'null', '[]'])('says so where the file is damaged: %j', async (text) => {
    const directory = folder()
    const files = new IdentityFiles(directory)
    await files.join(member())
    await writeFile(join(directory, 'member.json'), text)
    await expect(files.member()).rejects.toThrow(IdentityError)
  })

  it('is refused where the certificate is not that of the key', async () => {
    const files = new IdentityFiles(folder())
    await files.join({ ...member(), key: newKey() })
    await expect(files.member()).rejects.toThrow(/not that of its key/)
  })
})

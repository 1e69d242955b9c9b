import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestAuthority } from '../../src/pipeline/ingest/stream/test/certificates.ts'
import { startGitServer } from '../../src/pipeline/sinks/testing/git-server.ts'
import { gitRootfs, noContainers, runContainer } from '../containers.ts'

const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : noContainers()
const HELPER = `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$WHO" "$PASS"; }; f`

describe.skipIf(why !== undefined)(`the image for sinks in git${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let rootfs: string
  beforeAll(() => {
    rootfs = gitRootfs()
  })
  afterAll(() => {
    if (rootfs) rmSync(rootfs, { recursive: true, force: true })
  })
  const run = async (entrypoint: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    await using program = runContainer({ rootfs, entrypoint: [entrypoint], args, env, uid: 65_532, mounts: {} })
    const code = await program.ended()
    return { code, out: program.stdout(), err: program.stderr() }
  }

  it('reads a repository over https, with credentials of a helper, on a root that nobody can write to', async () => {
    const authority = await TestAuthority.make('git')
    const server = await startGitServer({ user: 'u', password: 'p', tls: await authority.sign('git', 'server') })
    const args = ['-c', 'http.sslVerify=false', '-c', `credential.helper=${HELPER}`, 'ls-remote', server.url()]
    const { code, err } = await run('/usr/bin/git', args, { WHO: 'u', PASS: 'p', GIT_TERMINAL_PROMPT: '0' })
    expect([code, err]).toEqual([0, ''])
    expect((await run('/usr/bin/git', args, { WHO: 'u', PASS: 'x', GIT_TERMINAL_PROMPT: '0' })).code).not.toBe(0)
  })

  it('has ssh', async () => {
    const { code, err } = await run('/usr/bin/ssh', ['-V'])
    expect([code, err]).toEqual([0, expect.stringContaining('OpenSSH')])
  })
})

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { freePort } from '../../../platform/runtime/testing/free-port.ts'

const SSHD = '/usr/sbin/sshd'

/** Why there is no sshd here; undefined where there is one. With CI_REQUIRE_ALL=1 nothing is skipped. */
export const noSshd = (): string | undefined =>
  process.env.CI_REQUIRE_ALL === '1' || existsSync(SSHD) ? undefined : 'there is no sshd (Debian: openssh-server)'

export interface SshServer {
  readonly port: number
  readonly user: string
  /** private key that may sign in */
  readonly key: string
  /** lines for known_hosts, of the server at these names; without any: at its address */
  knownHosts(...names: readonly string[]): string
  /** a fresh pair; @returns the private key */
  newKey(name: string, passphrase?: string): Promise<string>
}

/** A private sshd on the loopback that takes one key, for the user of the tests. */
export async function startSshServer(): Promise<SshServer> {
  const folder = await mkdtemp(join(tmpdir(), 'ssh-server-'))
  const newKey = async (name: string, passphrase = '') => {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', passphrase, '-C', name, '-f', join(folder, name)])
    return readFile(join(folder, name), 'utf8')
  }
  await newKey('host')
  const key = await newKey('client')
  const hostKey = (await readFile(join(folder, 'host.pub'), 'utf8')).split(' ').slice(0, 2).join(' ')
  const port = await freePort()
  const config = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(folder, 'host')}`,
    `AuthorizedKeysFile ${join(folder, 'client.pub')}`,
    'StrictModes no',
    'UsePAM no',
    'PidFile none',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
  ]
  await writeFile(join(folder, 'config'), `${config.join('\n')}\n`)
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })
  const child = spawn(SSHD, ['-D', '-e', '-f', join(folder, 'config')], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes('Server listening')) resolve()
    })
    child.once('exit', () => reject(new Error(`sshd ended: ${said}`)))
  })
  onTestFinished(async () => {
    const ended = once(child, 'exit')
    child.kill()
    await ended
    await rm(folder, { recursive: true, force: true })
  })
  return {
    port,
    user: userInfo().username,
    key,
    newKey,
    knownHosts: (...names) =>
      (names.length > 0 ? names : ['127.0.0.1']).map((name) => `[${name}]:${port} ${hostKey}\n`).join(''),
  }
}

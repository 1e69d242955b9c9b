/**
 * Containers as a cluster runs them, without a daemon: the image's root file system, built as deploy/Dockerfile builds it, read-only,
 * under any user, without a capability, each with a network of its own. Needs root and Linux's namespaces.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { program, type Running } from './process.ts'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Why no container can be run here; undefined where one can. */
export function noContainers(): string | undefined {
  if (process.getuid?.() !== 0) return 'containers need root'
  const has = (name: string) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0
  const lacking = ['unshare', 'setpriv', 'chroot', 'ip'].filter((name) => !has(name))
  return lacking.length > 0 ? `no ${lacking.join(', ')}` : undefined
}

/** rootfs.sh follows links, so nothing is copied twice. One package lies in the folder of another: that comes with it. */
function link(path: string, at: string): void {
  if (existsSync(at)) return
  mkdirSync(dirname(at), { recursive: true })
  symlinkSync(path, at)
}

/** What deploy/Dockerfile copies into the image. Takes what `npm run build` left in dist. @returns its folder */
export function buildRootfs(): string {
  const work = mkdtempSync(join(tmpdir(), 'rootfs-'))
  const app = join(work, 'app')
  mkdirSync(app)
  for (const name of ['package.json', 'LICENSE', 'bin', 'dist']) link(join(ROOT, name), join(app, name))
  // What `npm prune --omit=dev` would leave of the packages that are here.
  const kept = spawnSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: ROOT, encoding: 'utf8' }).stdout
  const modules = join(ROOT, 'node_modules')
  const packages = kept
    .split('\n')
    .filter((path) => path.startsWith(`${modules}/`) && !path.includes('/@clusterpulse/'))
  if (packages.length < 50) throw new Error(`npm names ${packages.length} packages: is npm ci done?`)
  for (const path of packages) link(path, join(app, 'node_modules', path.slice(modules.length + 1)))
  const rootfs = join(work, 'root')
  // Nobody writes to what is in there: its root is mounted read-only.
  execFileSync('sh', [join(ROOT, 'deploy/rootfs.sh'), app, rootfs], {
    stdio: 'pipe',
    env: { ...process.env, LINK: 'yes' },
  })
  rmSync(app, { recursive: true })
  addRuntimeFiles(rootfs)
  return rootfs
}

/** What the image for sinks in git holds besides. @returns its folder */
export function gitRootfs(): string {
  const rootfs = mkdtempSync(join(tmpdir(), 'rootfs-git-'))
  chmodSync(rootfs, 0o755)
  execFileSync('sh', [join(ROOT, 'deploy/rootfs-git.sh'), rootfs], { stdio: 'pipe' })
  addRuntimeFiles(rootfs)
  // Of rootfs.sh: ssh wants its user to have a name.
  writeFileSync(join(rootfs, 'etc/passwd'), 'nonroot:x:65532:65532:nonroot:/data:/sbin/nologin\n')
  return rootfs
}

/** What a container runtime brings. */
function addRuntimeFiles(rootfs: string): void {
  for (const name of ['proc', 'dev', 'tmp', 'etc', 'var/run/secrets'])
    mkdirSync(join(rootfs, name), { recursive: true })
  for (const name of ['hosts', 'resolv.conf']) writeFileSync(join(rootfs, 'etc', name), '')
}

/** Of an image that holds one static program, which is /program there. @returns its folder */
export function bareRootfs(program: string): string {
  const rootfs = mkdtempSync(join(tmpdir(), 'bare-'))
  chmodSync(rootfs, 0o755)
  copyFileSync(program, join(rootfs, 'program'))
  chmodSync(join(rootfs, 'program'), 0o755)
  addRuntimeFiles(rootfs)
  return rootfs
}

export interface Container {
  readonly rootfs: string
  /** default: the one of our image */
  readonly entrypoint?: readonly string[]
  /** of the entry point */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** user and supplementary group; the group is root's, as OpenShift has it */
  readonly uid: number
  /** path in the container → folder or file here */
  readonly mounts: Readonly<Record<string, string>>
  /** a network namespace by name; default: the machine's */
  readonly network?: string
  /** lines of /etc/hosts */
  readonly hosts?: string
}

/** As in the image's ENTRYPOINT. */
const ENTRYPOINT = ['/usr/local/bin/node', '/app/bin/clusterpulse.js']

const SCRIPT = `set -eu
root=$1 uid=$2; shift 2
mount --bind "$root" "$root"
while [ "$1" != -- ]; do mount --bind "$1" "$root$2"; shift 2; done
shift
mount --rbind /dev "$root/dev"
mount --bind /proc "$root/proc"
mount -t tmpfs -o size=64m,mode=1777 none "$root/tmp"
mount -o remount,bind,ro "$root"
# chroot needs its rights until it changes the user; none is left to what it starts.
exec setpriv --bounding-set -all,+sys_chroot,+setuid,+setgid --inh-caps -all --no-new-privs \\
  chroot --userspec="$uid:0" --groups="$uid" "$root" "$@"`

/** Starts it; its environment is the given one and the image's alone. */
export function runContainer({
  rootfs,
  entrypoint = ENTRYPOINT,
  args,
  env,
  uid,
  mounts,
  network,
  hosts,
}: Container): Running {
  const binds = Object.entries(mounts)
  if (hosts !== undefined) {
    const file = join(mkdtempSync(join(tmpdir(), 'hosts-')), 'hosts')
    writeFileSync(file, hosts)
    chmodSync(dirname(file), 0o755)
    binds.push(['/etc/hosts', file])
  }
  // Before the root is mounted read-only.
  for (const [at, from] of binds) {
    if (statSync(from).isDirectory()) mkdirSync(join(rootfs, at), { recursive: true })
    else if (!existsSync(join(rootfs, at))) writeFileSync(join(rootfs, at), '')
  }
  const inside = [
    'env',
    '-i',
    'NODE_ENV=production',
    'DATA_DIR=/data',
    ...Object.entries(env).map((pair) => pair.join('=')),
  ]
  const words = [
    ...(network ? ['ip', 'netns', 'exec', network] : []),
    ...[
      'unshare',
      '-m',
      '--propagation',
      'private',
      ...inside,
      'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
      'bash',
      '-c',
      SCRIPT,
    ],
    ...['container', rootfs, String(uid), ...binds.flatMap(([at, from]) => [from, at]), '--', ...entrypoint, ...args],
  ]
  return program(words[0] ?? '', words.slice(1))
}

// The version of a build: `0.1.0+<commit>`. With changes that are in no commit, or without git, a hash of the sources tells
// builds apart. GIT_COMMIT names the commit where the sources come without their history, as in an image's build.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'

const SOURCES = ['src', 'proto', 'web/src', 'web/index.html', 'scripts/build.js', 'package.json', 'package-lock.json']
const COMMIT = /^[0-9a-f]{7,64}$/i

/** @param environment of the process, for GIT_COMMIT */
export function buildVersion(root, environment = process.env) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const given = environment.GIT_COMMIT?.trim()
  if (given && !COMMIT.test(given)) throw new Error(`GIT_COMMIT=${given} is no commit: 7 to 64 hexadecimal digits`)
  if (given) return `${version}+${given.slice(0, 12).toLowerCase()}`
  const commit = commitOf(root)
  if (commit === undefined) return `${version}+src.${hashOf(root).slice(0, 12)}`
  const isAsCommitted = git(root, 'status', '--porcelain', '--', ...SOURCES) === ''
  return isAsCommitted ? `${version}+${commit}` : `${version}+${commit}.${hashOf(root).slice(0, 8)}`
}

/** undefined: no git, or a repository that only has ours somewhere inside it */
function commitOf(root) {
  const top = git(root, 'rev-parse', '--show-toplevel')
  if (!top || realpathSync(top) !== realpathSync(root)) return undefined
  return git(root, 'rev-parse', '--short=12', 'HEAD')
}

function git(root, ...words) {
  try {
    return execFileSync('git', ['-C', root, ...words], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}

function hashOf(root) {
  const hash = createHash('sha256')
  for (const path of SOURCES.map((name) => join(root, name)).flatMap(filesIn)) {
    hash
      .update(`${path.slice(root.length)}\0`)
      .update(readFileSync(path))
      .update('\0')
  }
  return hash.digest('hex')
}

function filesIn(path) {
  if (!existsSync(path)) return []
  if (statSync(path).isFile()) return [path]
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort()
}

const IPV4 = /^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(?!$)|$)){4}$/

function isIpv6(text: string): boolean {
  if (!/^[0-9a-fA-F:.]{2,45}$/.test(text) || text.split('::').length > 2 || text.includes(':::')) return false
  const parts = text.split(':')
  const tail = parts.at(-1) ?? ''
  const withIpv4 = tail.includes('.')
  if (withIpv4 && !IPV4.test(tail)) return false
  const groups = (withIpv4 ? parts.slice(0, -1) : parts).filter((part) => part !== '')
  if (!groups.every((part) => part.length <= 4) || /(^:[^:])|([^:]:$)/.test(text)) return false
  const count = groups.length + (withIpv4 ? 2 : 0)
  return text.includes('::') ? count < 8 : count === 8
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', more] = text.split('/')
  if (more !== undefined || !/^\d{1,3}$/.test(bits)) return false
  return (IPV4.test(address) && Number(bits) <= 32) || (isIpv6(address) && Number(bits) <= 128)
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const time = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

const DATE_TIME =
  /^(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)([.,]\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text)
  return match !== null && isDate(match[1] ?? '')
}

function isUri(text: string): boolean {
  if (text.startsWith('/')) return true
  return /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text) && URL.canParse(text)
}

const uuid = (version: string) =>
  new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$`, 'i')
const matches = (pattern: RegExp) => (text: string) => pattern.test(text)
const uri = (text: string) => text.length <= 8192 && isUri(text)

/** Of the formats a CustomResourceDefinition may name, those that are checked. All others mean nothing, as in Kubernetes. */
const STRING_FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  byte: matches(/^(?!$)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/),
  cidr: isCidr,
  date: isDate,
  'date-time': isDateTime,
  datetime: isDateTime,
  duration: matches(
    /^([+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+$|^0$|^\d+\s*(ns|us|µs|ms|s|m|h|d|w|nano(second)?s?|micro(second)?s?|milli(second)?s?|sec(ond)?s?|min(ute)?s?|h(ou)?rs?|days?|weeks?)$/i,
  ),
  email: matches(/^[^\s@<>]{1,64}@[^\s@<>]{1,255}$/),
  hexcolor: matches(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/),
  hostname: (text) =>
    text.length <= 255 &&
    /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\.?$/.test(text),
  ipv4: matches(IPV4),
  ipv6: isIpv6,
  mac: matches(/^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$|^([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}$/),
  uri,
  uuid: matches(uuid('[0-9a-f]')),
  uuid3: matches(uuid('3')),
  uuid4: matches(uuid('4')),
  uuid5: matches(uuid('5')),
}

/** Whether the text is of the format; an unknown format fits everything. */
export function fitsFormat(format: string, text: string): boolean {
  if (!Object.hasOwn(STRING_FORMATS, format)) return true
  return STRING_FORMATS[format]?.(text) ?? true
}

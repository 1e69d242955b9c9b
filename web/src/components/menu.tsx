import { type ReactNode, useId, useRef } from 'react'

/** A button with a panel: the browser's popover, so that Escape and a click elsewhere close it. */
export function Menu({
  label,
  children,
  className = '',
  title,
}: {
  label: ReactNode
  title?: string
  className?: string
  children: ReactNode
}): ReactNode {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const panel = useRef<HTMLDivElement>(null)
  const place = () => {
    const [from, box] = [button.current?.getBoundingClientRect(), panel.current]
    if (!from || !box?.matches(':popover-open')) return
    const left = Math.max(8, Math.min(from.left, document.documentElement.clientWidth - box.offsetWidth - 8))
    const below = from.bottom + 4
    const fits = below + box.offsetHeight < innerHeight - 8
    box.style.left = `${left}px`
    box.style.top = `${fits ? below : Math.max(8, from.top - box.offsetHeight - 4)}px`
  }
  return (
    <>
      <button
        ref={button}
        type="button"
        className={`button ${className}`}
        popoverTarget={id}
        {...(title && { 'aria-label': title })}
      >
        {label}
      </button>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a followed link closes the panel it stands in */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click */}
      <div
        ref={panel}
        id={id}
        popover="auto"
        className="menu"
        onToggle={place}
        onClick={(event) => {
          if (event.target instanceof Element && event.target.closest('a')) panel.current?.hidePopover()
        }}
      >
        {children}
      </div>
    </>
  )
}

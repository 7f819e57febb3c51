// Images of an event, read from its log when the reader asks for them.

import { useEffect, useState } from "preact/hooks";
import { isEmbedded, isFrozen } from "./address";
import type { Event } from "./event";
import { shortNotes } from "./format";

const MARK = /\[image\/(?:png|jpeg|gif|webp) \d+ bytes\]/g;

/** Offers the images that the text of an event names. */
export function Images({ event }: { event: Event }) {
  if (event.images) return <div class="images">{event.images.map((image, at) => <img key={at} src={image} alt={`Image ${at + 1} of event ${event.event_index}`} />)}</div>;
  const marks = event.text?.match(MARK) ?? [];
  // A tool answers no images, and a frame or a file may load nothing else.
  if (!marks.length || isEmbedded || isFrozen) return null;
  return <div class="images">{marks.map((mark, at) => <Picture key={at} event={event} number={at} name={shortNotes(mark).slice(1, -1)} />)}</div>;
}

function Picture({ event, number, name }: { event: Event; number: number; name: string }) {
  const [address, setAddress] = useState<string>();
  const [error, setError] = useState<string>();
  useEffect(() => () => { if (address) URL.revokeObjectURL(address); }, [address]);
  const load = async () => {
    const response = await fetch(`/api/image?event=${encodeURIComponent(event.event_id)}&number=${number}`);
    if (response.ok) setAddress(URL.createObjectURL(await response.blob()));
    else setError((await response.json()).error.message);
  };
  if (address) return <img src={address} alt={`${name} in event ${event.event_index}`} />;
  return <p class="more">{error ? <span class="bad">{error}</span> : <button type="button" onClick={() => void load()}>Show {name}</button>}</p>;
}

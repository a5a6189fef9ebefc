//! The decision how a picture is taken, from facts about the job.

use platen_shared::job::{Region, Viewport};

/// What is done to the page for a picture, and what draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PicturePlan {
    pub(super) outside: Outside,
    pub(super) command: Command,
}

/// What is done to the part of the page outside of the viewport before the picture is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outside {
    /// The picture does not have it.
    Nothing,
    /// It is loaded and shown.
    Shown,
    /// It is shown, and the page is scrolled through as far as the bottom of the picture.
    Scrolled,
}

/// The command that draws a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// A begin frame. Its picture ignores the device scale factor, shows only the viewport, and what the frame does not change as
    /// the frame before it has drawn that.
    Frame,
    /// A screenshot of the viewport.
    Screenshot,
    /// A screenshot of a rectangle, which may be outside of the viewport.
    Clip,
}

/// The facts that decide about a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct PictureFacts<'a> {
    pub(super) region: &'a Region,
    pub(super) viewport: Viewport,
    pub(super) has_begin_frame_control: bool,
    /// Whether the page has changed after its first frame. The frame in which a layer gets another scale, as at the end of an
    /// animation, shows it up to a pixel too large or with a black edge.
    pub(super) has_changed: bool,
    /// Whether the page is scrolled through before a capture of more than the viewport.
    pub(super) is_scrolled: bool,
}

impl PictureFacts<'_> {
    pub(super) fn plan(self) -> PicturePlan {
        PicturePlan { outside: self.outside(), command: self.command() }
    }

    fn outside(self) -> Outside {
        let height = self.viewport.height.get().into();
        match self.region {
            Region::Viewport => Outside::Nothing,
            Region::Clip(clip) if clip.y.pixels() + clip.height.pixels() <= height => Outside::Nothing,
            _ if self.is_scrolled => Outside::Scrolled,
            _ => Outside::Shown,
        }
    }

    #[expect(clippy::float_cmp, reason = "1 is exact")]
    fn command(self) -> Command {
        let Viewport { width, height, device_scale_factor, .. } = self.viewport;
        let factor = device_scale_factor.get();
        match self.region {
            Region::Viewport if factor == 1.0 && self.has_begin_frame_control && !self.has_changed => {
                Command::Frame
            }
            // Chromium does not answer if the width or height of the viewport is less than one device pixel.
            Region::Viewport if f64::from(width.get().min(height.get())) * factor >= 1.0 => {
                Command::Screenshot
            }
            _ => Command::Clip,
        }
    }
}

#[cfg(test)]
mod tests {
    use platen_shared::job::Clip;

    use super::*;

    #[test]
    fn a_picture_is_taken_as_the_facts_allow() {
        use {Command as C, Outside as O};
        let clip = |y: f64, height: f64| {
            let [x, width] = [0.0, 10.0].map(|side| side.try_into().unwrap());
            Region::Clip(Clip { x, y: y.try_into().unwrap(), width, height: height.try_into().unwrap() })
        };
        let element = || Region::Element("p".to_owned().try_into().unwrap());
        let (scrolled, not_scrolled) = (true, false);
        for (region, height, factor, has_begin_frame_control, is_scrolled, outside, command) in [
            (Region::Viewport, 100.0, 1.0, true, scrolled, O::Nothing, C::Frame),
            (Region::Viewport, 1.0, 1.0, true, not_scrolled, O::Nothing, C::Frame),
            (Region::Viewport, 100.0, 1.0, false, scrolled, O::Nothing, C::Screenshot),
            (Region::Viewport, 100.0, 2.0, true, scrolled, O::Nothing, C::Screenshot),
            (Region::Viewport, 2.0, 0.5, true, scrolled, O::Nothing, C::Screenshot),
            (Region::Viewport, 1.0, 0.5, true, scrolled, O::Nothing, C::Clip),
            (Region::FullPage, 100.0, 1.0, true, scrolled, O::Scrolled, C::Clip),
            (Region::FullPage, 100.0, 1.0, false, not_scrolled, O::Shown, C::Clip),
            (element(), 100.0, 1.0, true, scrolled, O::Scrolled, C::Clip),
            (element(), 100.0, 2.0, true, not_scrolled, O::Shown, C::Clip),
            (clip(50.0, 50.0), 100.0, 1.0, true, scrolled, O::Nothing, C::Clip),
            (clip(50.0, 50.5), 100.0, 1.0, true, scrolled, O::Scrolled, C::Clip),
            (clip(200.0, 50.0), 100.0, 1.0, true, not_scrolled, O::Shown, C::Clip),
        ] {
            let viewport = Viewport {
                height: height.try_into().unwrap(),
                device_scale_factor: factor.try_into().unwrap(),
                ..Viewport::default()
            };
            let mut facts = PictureFacts {
                region: &region,
                viewport,
                has_begin_frame_control,
                has_changed: false,
                is_scrolled,
            };
            assert_eq!(facts.plan(), PicturePlan { outside, command }, "{facts:?}");
            facts.has_changed = true;
            let command = if command == C::Frame { C::Screenshot } else { command };
            assert_eq!(facts.plan(), PicturePlan { outside, command }, "{facts:?}");
        }
    }
}

"""From photos or a video to a scene, before training. COLMAP's library works in a process of its own."""
